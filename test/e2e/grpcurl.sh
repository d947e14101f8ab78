#!/bin/bash
# grpcurl, which knows of a server what its reflection says, against a real one: see grpcurl_test.py. It needs Go.
#
#   test/e2e/grpcurl.sh [DENO COMMAND] [TEST ...]
. "$(dirname "$0")/setup.sh"

command -v go >/dev/null || fail "go is not installed"
prepare
"$here/install_grpcurl.sh" "$tmp" || fail "go cannot install grpcurl"
PATH=$tmp:$PATH run_program "${PYTHON:-python3}" grpcurl_test.py "$@"
