#!/usr/bin/env bash
# Installs what is missing and builds one preset. Quiet unless something fails; quick when there is nothing to do.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
readonly here root
# shellcheck source=deploy/packages.sh
source "$here/packages.sh"

usage() {
  cat <<'USAGE'
usage: deploy/build.sh [--preset NAME] [--jobs N] [--no-packages] [--verbose] [--help]

Installs the Debian 12 packages that are missing, configures the CMake preset and builds it with ninja into build/NAME.

  --preset NAME   release (default: all, with tests and benchmarks), programs (the programs alone, in a third of
                  the time), dev, faults (with failpoints), asan, tsan, compression (the library alone), fuzz or
                  fuzz-fast (with clang-14), arm64 (what needs no LibTorch, for machines of that kind) or
                  arm64-programs (the same, the programs alone)
  --jobs N        compilers at a time (default: the processors, less where memory is short)
  --no-packages   do not touch the machine's packages
  --verbose       show what CMake and ninja say

Another LibTorch 2.x, for the first configuration of a build folder; of Python's package torch, or unpacked:
  TERSE_TORCH=$(python3 -c 'import torch; print(*torch.__path__)') deploy/build.sh --preset programs
  CMAKE_PREFIX_PATH=/opt/libtorch deploy/build.sh --preset programs
USAGE
}

fail() {
  printf 'deploy/build.sh: %s\n' "$1" >&2
  exit 1
}

value_of() {
  [[ $# -ge 2 && -n "$2" ]] || fail "$1 needs a value; see deploy/build.sh --help"
  printf '%s' "$2"
}

# A file that includes LibTorch takes about 1.5 GB to compile.
default_jobs() {
  local processors gigabytes jobs
  processors=$(nproc)
  gigabytes=$(awk '/^MemAvailable:/ {printf "%d", $2 / 1500000}' /proc/meminfo)
  jobs=$((gigabytes < processors ? gigabytes : processors))
  echo $((jobs > 0 ? jobs : 1))
}

parse_arguments() {
  preset=release jobs='' packages=1 verbose=0
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --preset) preset=$(value_of "$@"); shift 2 ;;
      --jobs) jobs=$(value_of "$@"); shift 2 ;;
      --no-packages) packages=0; shift ;;
      --verbose) verbose=1; shift ;;
      *) fail "unknown argument '$1'; see deploy/build.sh --help" ;;
    esac
  done
  [[ "$preset" =~ ^(release|programs|dev|faults|asan|asan-all|tsan|arm64|arm64-programs|compression|fuzz|fuzz-fast)$ ]] ||
    fail "no preset '$preset'; the presets are release, programs, dev, faults, asan, asan-all, tsan, arm64, \
arm64-programs, compression, fuzz and fuzz-fast"
  [[ -n "$jobs" ]] || jobs=$(default_jobs)
  [[ "$jobs" =~ ^[1-9][0-9]*$ ]] || fail "--jobs must be a positive number, not '$jobs'"
}

# step NAME COMMAND...: the command's output goes to the log, and to the screen when it fails (or with --verbose).
step() {
  local name=$1 rc=0
  shift
  if [[ $verbose -eq 1 ]]; then
    "$@" </dev/null 2>&1 | tee "$log" || rc=$?
  else
    "$@" >"$log" 2>&1 </dev/null || rc=$?
  fi
  [[ $rc -eq 0 ]] && return 0
  # ninja prints every failing command with its errors; the end of the log is what stopped it.
  [[ $verbose -eq 1 ]] || grep -v '^\[[0-9]*/[0-9]*\] Building' "$log" | tail -n 60 >&2 || true
  fail "$name of preset '$preset' failed; the whole output is in $log"
}

# Sets package_sets to those that the preset is built with: tests and benchmarks have libraries of their own, and Python's
# extension is tested with the release and with assertions. For another kind of machine nearly all libraries are others.
choose_package_sets() {
  if [[ "$preset" == arm64* ]]; then
    package_sets=(arm64)
    return
  fi
  package_sets=(build)
  [[ "$preset" == programs ]] || package_sets+=(develop)
  [[ "$preset" != release && "$preset" != dev ]] || package_sets+=(bindings)
}

# While this script lives, one line on the terminal with ninja's steps and an estimate of the time left, from the log.
show_progress() {
  local begin=$SECONDS counts built total left
  while kill -0 $$ 2>/dev/null; do
    counts=$(tail -n 1 "$log" 2>/dev/null | sed -n 's|^\[\([0-9]*\)/\([0-9]*\)\].*|\1 \2|p')
    if [[ -n "$counts" ]]; then
      read -r built total <<<"$counts"
      left=$(((SECONDS - begin) * (total - built) / (built > 0 ? built : 1)))
      printf '\rbuild: step %d of %d, about %d s left \033[K' "$built" "$total" "$left"
    fi
    sleep 1
  done
}

# Runs ninja as a step; on a terminal it shows how far it is.
build() {
  if [[ $verbose -eq 1 || ! -t 1 ]]; then
    step build ninja -C "$folder" -j "$jobs"
    return
  fi
  show_progress &
  shower=$!
  trap 'hide_progress' EXIT
  step build ninja -C "$folder" -j "$jobs"
  hide_progress
  trap - EXIT
}

hide_progress() {
  kill "$shower" 2>/dev/null || true
  wait "$shower" 2>/dev/null || true
  printf '\r\033[K'
}

main() {
  parse_arguments "$@"
  choose_package_sets
  cd "$root"
  [[ $packages -eq 0 ]] || terse_install_packages "${package_sets[@]}"
  local folder=build/$preset begin=$SECONDS
  mkdir -p "$folder"
  log=$root/$folder/build.log
  if [[ ! -f "$folder/build.ninja" ]]; then
    step configuration cmake --preset "$preset"
  fi
  if ninja -C "$folder" -n 2>/dev/null | grep -q 'no work to do'; then
    echo "build: $preset is up to date"
    return 0
  fi
  echo "build: $preset with $jobs jobs"
  build
  echo "build: $preset done in $((SECONDS - begin)) s"
}

main "$@"
