#!/bin/sh
# small_text.sh BENCH DIR: rows of the table "sparseloco" on a text that is made here, twice: the second time what is
# done is not run again, and the table is the same. DIR is emptied.
set -eu
rm -rf "$2"
mkdir -p "$2/data"
for line in $(seq 400); do
  echo "It was the best of times, it was the worst of times, in verse $line of the tale."
done >"$2/data/tinyshakespeare.txt"
for run in first second; do
  "$1" paper sparseloco --data "$2/data" --only small-sparseloco --only small-auto --scale 0.005 --results '' \
    --out "$2/out" >"$2/$run.md"
done
cmp "$2/first.md" "$2/second.md"
tr '\n' ' ' <"$2/second.md"
