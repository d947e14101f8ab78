#!/bin/bash
# Clients that vanish without a word: the server has to find out within a minute and let go of all that was theirs. See
# cut_test.py.
#
#   test/e2e/cut_test.sh [DENO COMMAND] [cut_test.py's options]
. "$(dirname "$0")/setup.sh"

run_suite cut_test.py "$@"
