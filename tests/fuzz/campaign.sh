#!/usr/bin/env bash
# Runs the fuzzers for long, a turn at a time, and adds what they did to the totals of all campaigns before.
set -euo pipefail
exec </dev/null

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
readonly here root
readonly totals=$here/totals.json
readonly work=$root/build/fuzz-campaign

usage() {
  cat <<'USAGE'
usage: tests/fuzz/campaign.sh [--executions N] [--minutes M] [--jobs J] [--only REGEX] [--turn SECONDS] [--json] [--help]

Runs every target in turns, those with the fewest executions first: most of a turn in the optimised build (preset
fuzz-fast) with short inputs, which are many more in the same time, then with inputs of full length, and the rest over
what was learnt in the build with AddressSanitizer (preset fuzz). What they learn stays in
build/fuzz-campaign; executions, time, coverage, memory and crashes are added to totals.json and to the table of
README.md beside this file after every turn. Ctrl-C ends it at once and loses nothing that was counted. It may run at a low
priority, but not at an idle one: a target that gets no processor for ten seconds counts as one that hangs.

  --executions N   until every target has that many in all, earlier campaigns included (default 100000000)
  --minutes M      or until so many minutes have passed (default 60)
  --jobs J         targets at a time (default: the processors)
  --only REGEX     only the targets whose names match
  --turn SECONDS   length of a turn (default 120)
  --json           the closing line as JSON

Exit code 1 when an input crashes a target, found in this campaign or in an earlier one: the inputs are kept in
build/fuzz-campaign/crashes, the command that repeats each is printed, and the target gets no more turns until it is
mended.
USAGE
}

fail() {
  printf 'tests/fuzz/campaign.sh: %s\n' "$1" >&2
  exit 2
}

parse_arguments() {
  executions=100000000 minutes=60 jobs=$(nproc) only=. turn=120 json=''
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --json) json=--json; shift; continue ;;
      --executions | --minutes | --jobs | --turn)
        [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || fail "$1 needs a positive number; see --help"
        printf -v "${1#--}" %s "$2"
        ;;
      --only) only=${2:?--only needs a regular expression} ;;
      *) fail "unknown argument '$1'; see --help" ;;
    esac
    shift 2
  done
}

# fuzz NAME VARIANT SECONDS: one run of libFuzzer over what the target has learnt; its log is counted afterwards.
fuzz() {
  local name=$1 variant=$2 seconds=$3 preset=fuzz max_len reduce=1 column=2
  [[ "$variant" == asan ]] || preset=fuzz-fast reduce=0
  [[ "$variant" != short ]] || column=3
  max_len=$(awk -v name="$name" -v column=$column '$1 == name {print $column}' "$root/build/fuzz/tests/fuzz/targets.txt")
  exec "$root/build/$preset/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len="$max_len" -timeout=10 \
    -rss_limit_mb=1024 -malloc_limit_mb=64 -print_final_stats=1 -entropic=0 -reduce_inputs=$reduce -artifact_prefix="$work/crashes/$name-" \
    "$work/corpus/$name" "$here/corpus/$name" >"$work/$name.$variant.log" 2>&1
}

# take_turn VARIANT SECONDS NAME...: all at once, each in a process of its own, and counts what they did.
take_turn() {
  local variant=$1 seconds=$2 name begin=$SECONDS
  shift 2
  children=()
  for name in "$@"; do
    mkdir -p "$work/corpus/$name" "$work/crashes"
    fuzz "$name" "$variant" "$seconds" &
    children+=($!)
  done
  for child in "${children[@]}"; do
    while kill -0 "$child" 2>/dev/null; do wait "$child" || true; done  # a signal ends `wait`, not what it waits for
  done
  children=()
  for name in "$@"; do
    "$here/totals.py" add "$totals" "$name" "$variant" $((SECONDS - begin)) "$work/$name.$variant.log"
  done
}

# Ends the fuzzers early; take_turn then counts what they had done.
stop() {
  stopping=1
  [[ ${#children[@]} -eq 0 ]] || kill -TERM "${children[@]}" 2>/dev/null || true
}

# still_crashes NAME INPUT: in one of the builds, whose command it prints.
still_crashes() {
  local preset binary
  for preset in fuzz fuzz-fast; do
    binary=build/$preset/tests/fuzz/fuzz_$1
    "$root/$binary" -timeout=10 "$2" >"$work/crash.log" 2>&1 && continue
    echo "crash: $binary ${2#"$root/"}" >&2
    return 0
  done
  return 1
}

# Runs every input that once crashed a target. One that no longer does becomes part of what the target knows.
check_crashes() {
  local input name
  local -A open=()
  shopt -s nullglob
  crashed=0
  for input in "$work"/crashes/*; do
    name=$(basename "$input")
    name=${name%%-*}
    if still_crashes "$name" "$input"; then
      open[$name]=$((${open[$name]:-0} + 1)) crashed=$((crashed + 1))
    else
      mkdir -p "$work/corpus/$name"
      mv "$input" "$work/corpus/$name/"
    fi
  done
  local counts=()
  for name in "${!open[@]}"; do counts+=("$name=${open[$name]}"); done
  "$here/totals.py" open "$totals" "${counts[@]}"
}

main() {
  parse_arguments "$@"
  "$root/deploy/build.sh" --preset fuzz
  "$root/deploy/build.sh" --preset fuzz-fast --no-packages
  export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=32}
  children=() stopping=0 crashed=0
  mkdir -p "$work"
  check_crashes
  trap stop INT TERM
  local deadline=$((SECONDS + 60 * minutes)) seconds targets
  while [[ $stopping -eq 0 && $SECONDS -lt $deadline ]]; do
    mapfile -t targets < <("$here/totals.py" next "$totals" "$root/build/fuzz/tests/fuzz/targets.txt" "$executions" \
      "$only" "$jobs")
    [[ ${#targets[@]} -gt 0 ]] || break
    seconds=$((deadline - SECONDS < turn ? deadline - SECONDS : turn))
    take_turn short $((seconds * 8 / 10 + 1)) "${targets[@]}"
    [[ $stopping -eq 1 ]] || take_turn fast $((seconds / 10 + 1)) "${targets[@]}"
    [[ $stopping -eq 1 ]] || take_turn asan $((seconds / 10 + 1)) "${targets[@]}"
    check_crashes
    "$here/totals.py" table "$totals" "$here/README.md"
    echo "campaign: $((SECONDS / 60)) min, $("$here/totals.py" summary "$totals")"
  done
  "$here/totals.py" table "$totals" "$here/README.md"
  "$here/totals.py" summary "$totals" $json
  [[ $crashed -eq 0 ]] || exit 1
}

main "$@"
