#!/usr/bin/env bash
# Runs one fuzzing target for TERSE_FUZZ_SECONDS (4) over a copy of its seeds; the input of a crash stays in the build
# folder.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: run_target.sh BINARY SEEDS WORK MAX_LEN

  BINARY   the target
  SEEDS    the folder of its committed inputs, which is not changed
  WORK     a folder for the copy (WORK/NAME), the log (WORK/NAME.log) and inputs of crashes (WORK/crashes)
  MAX_LEN  the most bytes that it tries
USAGE
}

if [[ $# -ne 4 || ! -x "$1" || ! -d "$2" ]]; then
  usage >&2
  exit 2
fi
name=$(basename "$1")
copy=$3/$name log=$3/$name.log crashes=$3/crashes
rm -rf "$copy"
mkdir -p "$copy" "$crashes"
cp -r "$2/." "$copy/"

# Freed memory is held back for a while to catch its use; the default of 256 MB would take up the limit.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=32:detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
rc=0
"$1" -max_total_time="${TERSE_FUZZ_SECONDS:-4}" -rss_limit_mb=512 -malloc_limit_mb=64 -timeout=5 \
  -max_len="$4" -artifact_prefix="$crashes/$name-" "$copy" >"$log" 2>&1 || rc=$?
if [[ $rc -ne 0 ]]; then
  tail -n 60 "$log"
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  echo "run_target.sh: $name found a fault (log: $log); input: ${input:-none written}"
  [[ -z "$input" ]] || echo "again: $1 $input"
  exit 1
fi
rm -rf "$copy"
grep '^Done' "$log"
