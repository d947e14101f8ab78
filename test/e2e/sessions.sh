#!/bin/bash
# Servers that share sessions: two behind one nginx on one Redis, and one with a file of its own. See sessions_test.py.
#
#   test/e2e/sessions.sh [DENO COMMAND]
#
# Besides what setup.sh names it needs redis-server and nginx: apt-get install -y redis-server nginx-light
. "$(dirname "$0")/setup.sh"

PATH=$PATH:/usr/sbin # where Debian has nginx, and not everybody looks
for program in redis-server nginx; do
  command -v $program >/dev/null || fail "$program is not installed"
done
run_suite sessions_test.py "$@"
