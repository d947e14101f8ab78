#!/bin/bash
# The OpenAPI document, and whether a real server does as it says: see schemathesis_test.py.
#
#   test/e2e/schemathesis.sh [DENO COMMAND]
. "$(dirname "$0")/setup.sh"

run_with_package "schemathesis==4.32.5 openapi-spec-validator==0.9.0" schemathesis_test.py "$@"
