#!/bin/bash
# Foreign clients against a real server: the bug reports' cases, the contract's cases, and the Python and Go examples.
#
#   test/e2e/run.sh [DENO COMMAND] [run.py's options]
#
# DENO COMMAND is one word as the shell sees it, "deno" by default; "npx -y deno@2.9.6" works too.
. "$(dirname "$0")/setup.sh"

run_suite run.py "$@"
