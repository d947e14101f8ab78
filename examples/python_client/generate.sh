#!/bin/sh
# Generates the Python stubs of ../../protos into gen/, with grpcio-tools where it is installed, else with protoc.
set -eu
cd "$(dirname "$0")"
python=${PYTHON:-python3}
protos=../../protos
files="inference.proto inference/v1/model_inference.proto"
mkdir -p gen
if "$python" -c "import grpc_tools.protoc" 2>/dev/null; then
  # shellcheck disable=SC2086
  "$python" -m grpc_tools.protoc -I "$protos" --python_out=gen --grpc_python_out=gen $files
else
  # shellcheck disable=SC2086
  protoc -I "$protos" --python_out=gen --grpc_python_out=gen \
    --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" $files
fi
