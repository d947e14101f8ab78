#!/bin/bash
# Triton's own Python clients, over gRPC and HTTP, against a real server: see triton_test.py.
#
#   test/e2e/triton.sh [DENO COMMAND]
. "$(dirname "$0")/setup.sh"

run_with_package "tritonclient[grpc,http]==2.73.0" triton_test.py "$@"
