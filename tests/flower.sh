#!/usr/bin/env bash
# terse.flower with Flower from PyPI, in a virtual environment. Not part of tests/run.sh: it needs PyPI.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/flower.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"

usage() {
  cat <<'USAGE'
usage: tests/flower.sh [--build DIR] [--venv DIR] [--help]

Makes a virtual environment with Flower, unless it is there, and runs tests/python/flower_test.py in it: a SuperLink and SuperNodes as
processes, rounds that fail and a SuperNode that is killed. It takes about three minutes.

  --build DIR   the build whose package to test (default: build/release), with the target terse_python_codecs
  --venv DIR    the virtual environment (default: build/flower); bench/rivals/run.py runs with it too
USAGE
}

parse_arguments() {
  build=$root/build/release venv=$root/build/flower
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --build) build=$(absolute "$(value_of "$@")"); shift 2 ;;
      --venv) venv=$(absolute "$(value_of "$@")"); shift 2 ;;
      *) unknown_argument "$1" ;;
    esac
  done
  [[ -d "$build/python/terse" ]] || fail "there is no package in '$build/python'; build the target terse_python_codecs"
}

# Debian's torch was built for NumPy 1.
make_environment() {
  [[ ! -x "$venv/bin/flower-superlink" ]] || return 0
  say "installing Flower into $venv"
  /usr/bin/python3 -m venv --system-site-packages "$venv"
  "$venv/bin/pip" install --quiet 'flwr>=1.42,<2' 'numpy<2'
}

main() {
  parse_arguments "$@"
  make_environment
  say "Flower $("$venv/bin/python" -c 'import importlib.metadata; print(importlib.metadata.version("flwr"))')"
  PYTHONPATH=$build/python:$root/tests/python "$venv/bin/python" "$root/tests/python/flower_test.py"
  say "passed"
}

main "$@"
