#!/bin/bash
# One process beside several, on the same machine: test/bench/processes.sh [--rounds N] [--processes N]
. "$(dirname "$0")/../e2e/setup.sh"
command -v h2load >/dev/null || fail "h2load is not installed (nghttp2-client)"
run_suite ../bench/processes.py deno "$@"
