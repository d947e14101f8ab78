#!/bin/sh
# Generates the Go stubs of ../../protos into gen/. Needs protoc; its two Go plugins come through the Go module proxy.
set -eu
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN="$bin" go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.6
GOBIN="$bin" go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.5.1

# The protos name no Go packages, for they belong to no language: the M options say which file becomes which package.
module=example.com/tensorlet/go_client
tensors="Minference.proto=$module/gen/inference"
modes="Minference/v1/model_inference.proto=$module/gen/inferencev1"
PATH="$bin:$PATH" protoc -I ../../protos \
  --go_out=. --go_opt="module=$module,$tensors,$modes" \
  --go-grpc_out=. --go-grpc_opt="module=$module,$tensors,$modes" \
  inference.proto inference/v1/model_inference.proto
