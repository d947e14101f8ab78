#!/bin/sh
# Generates the Python stubs of ../../protos into gen/: they are the client's.
set -eu
cd "$(dirname "$0")"
exec ../python_client/generate.sh "$PWD/gen"
