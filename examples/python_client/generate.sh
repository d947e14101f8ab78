#!/bin/sh
# Generates the Python stubs of ../../protos into gen/, or the folder that is given, with grpcio-tools where it is
# installed, else with protoc.
set -eu
cd "$(dirname "$0")"
python=${PYTHON:-python3}
protos=../../protos
out=${1:-gen}
files="inference.proto inference/v1/model_inference.proto"
mkdir -p "$out"
if "$python" -c "import grpc_tools.protoc" 2>/dev/null; then
  # shellcheck disable=SC2086
  "$python" -m grpc_tools.protoc -I "$protos" --python_out="$out" --grpc_python_out="$out" $files
else
  # shellcheck disable=SC2086
  protoc -I "$protos" --python_out="$out" --grpc_python_out="$out" \
    --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" $files
fi
