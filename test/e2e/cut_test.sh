#!/bin/bash
# Clients that vanish without a word: the server has to find out within a minute and let go of all that was theirs. See
# cut_test.py.
#
#   test/e2e/cut_test.sh [DENO COMMAND] [cut_test.py's options]
. "$(dirname "$0")/setup.sh"

deno=deno
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  deno=$1
  shift
fi
run_suite cut_test.py "$deno" "$@"
