#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test; ends with ctest's own closing lines.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"

usage() {
  cat <<'USAGE'
usage: tests/run.sh [--quick | --all] [--only REGEX] [--configure] [--help]

Builds the preset `release` and runs every test through ctest; then those that need no LibTorch again with failpoints and
mutants compiled in (preset faults: fleets are killed at every failpoint and simulated, tests/RELIABILITY.md), under
ThreadSanitizer and under AddressSanitizer (presets tsan and asan); then every fuzzer for a few seconds (preset fuzz;
TERSE_FUZZ_SECONDS, default 4, for each). Before all that the formatting of every source is checked, and, unless --quick
or --only is given, the README's first command runs on a bare Debian 12 (tests/bare.sh, as root) and clang-tidy examines
every source (tests/lint.sh, preset tidy). Exits non-zero on the first failure.

  --quick        the formatting and the preset `release` only
  --all          AddressSanitizer also for the campaigns that kill processes and disturb networks (preset asan-all)
  --only REGEX   only the tests whose names match
  --configure    install what is missing and configure every preset, and build nothing
USAGE
}

fail() {
  printf 'tests/run.sh: %s\n' "$1" >&2
  exit 1
}

parse_arguments() {
  quick=0 address=asan only='' configure=0
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --quick) quick=1; shift ;;
      --configure) configure=1; shift ;;
      --all) address=asan-all; shift ;;
      --only)
        [[ $# -ge 2 && -n "$2" ]] || fail "--only needs a regular expression; see tests/run.sh --help"
        only=$2
        shift 2
        ;;
      *) fail "unknown argument '$1'; see tests/run.sh --help" ;;
    esac
  done
}

# build_presets NAME...: builds them one after the other, with what others leave of the processors: tests wait for a part
# of their time. Leaves the file build/NAME/built behind each.
build_presets() {
  local preset
  for preset in "$@"; do
    mkdir -p "$root/build/$preset"
    nice -n 19 "$root/deploy/build.sh" --preset "$preset" --no-packages >"$root/build/$preset/build.log" 2>&1 || return 1
    touch "$root/build/$preset/built"
  done
}

# await_build NAME: waits until build_presets, which is the process $builder, has built it.
await_build() {
  until [[ -e "$root/build/$1/built" ]]; do
    if ! kill -0 "$builder" 2>/dev/null && [[ ! -e "$root/build/$1/built" ]]; then
      # Without a log, because a preset before it failed, the message below still says which one is missing.
      cat "$root/build/$1/build.log" >&2 || true
      fail "the preset '$1' does not build, as above"
    fi
    sleep 1
  done
}

# run_preset NAME: runs the tests of what is built; what ctest says goes to build/NAME/ctest.log. With --only, not every
# preset has such a test.
run_preset() {
  local preset=$1 folder=$root/build/$1 rc=0 no_tests=error
  [[ -z "$only" ]] || no_tests=ignore
  await_build "$preset"
  echo "tests: preset $preset"
  # One more than there are processors, because many tests wait for a part of their time.
  (cd "$root" && ctest --preset "$preset" --no-tests=$no_tests -j "$(($(nproc) + 1))" ${only:+-R "$only"} 2>&1) |
    tee "$folder/ctest.log" || rc=$?
  [[ $rc -eq 0 ]] || fail "tests of '$preset' failed, as listed above; one alone: ctest --preset $preset -R NAME"
}

# timed NAME COMMAND...: runs the command, and adds the name and its seconds to `took`.
timed() {
  local name=$1 begin=$SECONDS
  shift
  "$@"
  took+=("$name $((SECONDS - begin)) s")
}

# The machine that runs the tests has had packages installed for long; only a bare one tells whether the sets are whole.
run_bare() {
  if [[ $EUID -ne 0 ]]; then
    echo "tests: tests/bare.sh was not run, because it needs root"
    return
  fi
  "$root/tests/bare.sh"
}

# Prints the end of ctest's output, from "100% tests passed" on.
closing_lines() {
  sed -n '/^[0-9]*% tests passed/,$p' "$root/build/$1/ctest.log"
}

main() {
  parse_arguments "$@"
  terse_install_packages build develop bindings test site
  local presets=(release) preset begin=$SECONDS took=() each
  [[ $quick -eq 1 ]] || presets+=(faults tsan "$address" fuzz)
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  if [[ $configure -eq 1 ]]; then
    for preset in "${presets[@]}" tidy; do (cd "$root" && cmake --preset "$preset"); done
    return
  fi
  "$root/tests/lint.sh" --format
  if [[ $quick -eq 0 && -z "$only" ]]; then
    timed "a bare machine" run_bare
    timed clang-tidy "$root/tests/lint.sh" --tidy
  fi
  rm -f "$root"/build/*/built
  # In a group of its own, which ends with this script.
  set -m
  build_presets "${presets[@]}" &
  builder=$!
  set +m
  # It has usually ended by then, and its failure is no reason to change this script's exit code.
  trap 'kill -- "-$builder" 2>/dev/null || true' EXIT
  for preset in "${presets[@]}"; do timed "$preset" run_preset "$preset"; done
  local logs=("${presets[@]/#/$root/build/}")
  grep -q '^[0-9]*% tests passed' "${logs[@]/%//ctest.log}" ||
    fail "no preset of ${presets[*]} has a test that matches '$only'; ctest --preset release -N lists them"
  printf -v each '%s, ' "${took[@]}"
  echo
  echo "tests: presets ${presets[*]} passed in $((SECONDS - begin)) s, build included: ${each%, }"
  for preset in "${presets[@]:1}"; do
    echo "preset $preset:"
    closing_lines "$preset"
  done
  echo "preset release:"
  closing_lines release
}

main "$@"
