#!/bin/sh
# Python stubs with flat names, as caselib.py imports them: stubs.sh PYTHON FOLDER
set -eu
python=$1
out=$2
protos=$(cd "$(dirname "$0")/../../protos" && pwd)
mkdir -p "$out"

generate() {
  if "$python" -c "import grpc_tools.protoc" 2>/dev/null; then
    "$python" -m grpc_tools.protoc -I "$1" --python_out="$out" --grpc_python_out="$out" "$2"
  else
    protoc -I "$1" --python_out="$out" --grpc_python_out="$out" \
      --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" "$2"
  fi
}

generate "$protos" inference.proto
# Each from its own folder: grpc.health.v1 as a Python package would hide the library of that name.
generate "$protos/inference/v1" model_inference.proto
generate "$protos/grpc/health/v1" health.proto
generate "$protos/grpc/reflection/v1" reflection.proto
