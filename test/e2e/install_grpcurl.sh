#!/bin/sh
# The grpcurl of the tests, by Go: install_grpcurl.sh FOLDER
set -eu
GOBIN=$(cd "$1" && pwd) go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
