#!/bin/bash
# OpenAI's own Python client against a real server. See openai_test.py.
#
#   test/e2e/openai.sh [DENO COMMAND] [TEST ...]
#
# Needs a python3 with venv and pip, which installs the client into a folder that is removed afterwards.
. "$(dirname "$0")/setup.sh"

CLIENT=openai==3.57.0

deno=${1:-deno}
shift
tmp=$(mktemp -d)
child=
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"${PYTHON:-python3}" -m venv "$tmp/venv" && "$tmp/venv/bin/pip" install --quiet "$CLIENT" || fail "pip cannot install $CLIENT"
PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 E2E_DENO="$deno" "$tmp/venv/bin/python" "$here/openai_test.py" "$@" &
child=$!
wait "$child"
status=$?
child=
exit $status
