#!/usr/bin/env bash
# terse.simulate with workers of Ray from PyPI, in a virtual environment. Not part of tests/run.sh: it needs PyPI.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/ray.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"

usage() {
  cat <<'USAGE'
usage: tests/ray.sh [--build DIR] [--venv DIR] [--help]

Makes a virtual environment with Ray, unless it is there, and runs tests/python/ray_test.py in it: a Ray cluster of two nodes on this
machine, of which one is lost, workers that are killed, and the same model as without Ray. It takes about two minutes.

  --build DIR   the build whose package and programs to test (default: build/release)
  --venv DIR    the virtual environment (default: build/ray); bench/simulate_lenet5.py runs with it too
USAGE
}

parse_arguments() {
  build=$root/build/release venv=$root/build/ray
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --build) build=$(absolute "$(value_of "$@")"); shift 2 ;;
      --venv) venv=$(absolute "$(value_of "$@")"); shift 2 ;;
      *) unknown_argument "$1" ;;
    esac
  done
  [[ -d "$build/python/terse" ]] || fail "there is no package in '$build/python'; build the target terse_python_codecs"
  [[ -x "$build/bin/terse-simulate" ]] || fail "there is no terse-simulate in '$build/bin'; build it"
}

# Debian's torch was built for NumPy 1.
make_environment() {
  [[ ! -x "$venv/bin/ray" ]] || return 0
  say "installing Ray into $venv"
  /usr/bin/python3 -m venv --system-site-packages "$venv"
  "$venv/bin/pip" install --quiet 'ray>=2.40,<3' 'numpy<2'
}

main() {
  parse_arguments "$@"
  make_environment
  say "Ray $("$venv/bin/python" -c 'import importlib.metadata; print(importlib.metadata.version("ray"))')"
  PYTHONPATH=$build/python:$root/tests/python TERSE_BIN=$build/bin "$venv/bin/python" "$root/tests/python/ray_test.py"
  say "passed"
}

main "$@"
