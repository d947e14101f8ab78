#!/bin/bash
# The suite with functions in the server's own event loop and in processes of their own, side by side: run.sh alone has
# them in workers. The last line is "N passed, N failed".
#
#   test/e2e/levels.sh [DENO COMMAND]
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 143' INT TERM

levels="inline process"
for level in $levels; do
  TENSORLET_ISOLATION=$level "$here/run.sh" "${1:-deno}" --skip-examples >"$tmp/$level" 2>&1 &
done
wait
passed=0
failed=0
for level in $levels; do
  echo "--- $level"
  cat "$tmp/$level"
  read -r ok bad < <(tail -n 1 "$tmp/$level" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p')
  passed=$((passed + ${ok:-0}))
  failed=$((failed + ${bad:-1}))
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
