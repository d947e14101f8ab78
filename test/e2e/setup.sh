# Sourced by the scripts of this folder: finds a Python, generates the stubs, runs a program of this folder, cleans up.
#
# Python is $PYTHON, else the first of python3 and /usr/bin/python3 that has grpcio, protobuf and NumPy, from Debian with
#   apt-get install -y python3-grpcio python3-numpy python3-protobuf protobuf-compiler protobuf-compiler-grpc
# or from a virtual environment that is active, with
#   pip install grpcio grpcio-tools numpy
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  echo "Cannot run the foreign clients: $1" >&2
  echo "0 passed, 1 failed"
  exit 1
}

# run_suite PROGRAM [DENO COMMAND] [OPTION ...]: DENO COMMAND is one word as the shell sees it, "deno" by default.
run_suite() {
  local program=$1 candidate python=
  shift
  for candidate in "${PYTHON:-python3}" /usr/bin/python3; do
    if "$candidate" -c "import grpc, numpy, google.protobuf" 2>/dev/null; then
      python=$candidate
      break
    fi
  done
  [ -n "$python" ] || fail "no python3 has grpcio, protobuf and numpy (see setup.sh)"
  prepare
  "$here/stubs.sh" "$python" "$tmp/stubs" || fail "the stubs need grpcio-tools, or protoc with grpc_python_plugin"
  PYTHONPATH="$tmp/stubs" run_program "$python" "$program" "$@"
}

# run_with_package PACKAGES PROGRAM [DENO COMMAND] [OPTION ...]: the same with packages of PyPI (one word, spaces between
# them), in an environment of their own.
run_with_package() {
  local packages program=$2
  read -ra packages <<<"$1"
  shift 2
  prepare
  "${PYTHON:-python3}" -m venv "$tmp/venv" && "$tmp/venv/bin/pip" install --quiet "${packages[@]}" ||
    fail "${packages[*]} needs a python3 with venv, and pip"
  run_program "$tmp/venv/bin/python" "$program" "$@"
}

prepare() {
  tmp=$(mktemp -d)
  child=
  trap cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# run_program PYTHON PROGRAM [DENO COMMAND] [OPTION ...]
run_program() {
  local python=$1 program=$2 deno=deno
  shift 2
  if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    deno=$1
    shift
  fi
  # In the background, so that the traps run while it works.
  PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 E2E_DENO="$deno" "$python" "$here/$program" "$@" &
  child=$!
  wait "$child"
  local status=$?
  child=
  exit "$status"
}

cleanup() {
  # The programs end their servers when they are told to stop.
  if [ -n "$child" ] && kill -TERM "$child" 2>/dev/null; then wait "$child"; fi
  rm -rf "$tmp"
}
