#!/bin/bash
# The server has to outlive h2load's GOAWAYs and clients that are killed in the middle of a call: see kill_test.py.
#
#   test/e2e/kill_test.sh [DENO COMMAND] [kill_test.py's options]
#
# Besides what setup.sh names it needs h2load: apt-get install -y nghttp2-client
. "$(dirname "$0")/setup.sh"

command -v h2load >/dev/null || fail "h2load is not installed (nghttp2-client)"
run_suite kill_test.py "$@"
