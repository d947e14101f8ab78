#!/bin/bash
# OpenAI's own Python client against a real server: see openai_test.py.
#
#   test/e2e/openai.sh [DENO COMMAND] [TEST ...]
. "$(dirname "$0")/setup.sh"

run_with_package openai==3.57.0 openai_test.py "$@"
