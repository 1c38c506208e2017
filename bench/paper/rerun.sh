#!/bin/sh
# rerun.sh BENCH DIR: a short row of a table, twice; its figures must be the same both times, and its accuracy that of the
# same run in one process. DIR is emptied.
set -eu
rm -rf "$2"
for run in first second; do
  "$1" paper sbc-table2 --only lenet5-sbc2 --scale 0.01 --json --results '' --out "$2/$run" >"$2.$run.json"
  # Bytes on the wire depend on when acknowledgements leave, and time is time.
  grep -v -e wire -e '"seconds"' -e '"iterations_a_second"' "$2.$run.json" >"$2.$run.figures"
done
cmp "$2.first.figures" "$2.second.figures"
if "$1" paper sbc-table2 --only lenet5 --only lenet5-scb2 --list >&2; then
  echo "paper takes --only with the name of no row" >&2
  exit 1
fi
"$1" paper sbc-table2 --only lenet5-sbc2 --scale 0.01 --run-files "$2/files" >&2
"$1" train "$2/files/lenet5-sbc2.toml" --workers 2 >"$2.one.table"
in_one=$(awk -F '|' 'END { print $5 + 0 }' "$2.one.table")
grep "\"accuracy\": $in_one," "$2.second.json" >&2
# The last step, because the caller looks for these figures and not at the exit code.
cat "$2.second.json"
