#!/bin/bash
# A server of several processes under load while they reload, die and are replaced: see processes_test.py.
#
#   test/e2e/processes.sh [DENO COMMAND] [TEST ...]
. "$(dirname "$0")/setup.sh"

run_suite processes_test.py "$@"
