#!/bin/bash
# Latency beside bare grpc-js: test/bench/latency.sh [ROUNDS]
. "$(dirname "$0")/../e2e/setup.sh"
run_suite ../bench/latency.py deno "$@"
