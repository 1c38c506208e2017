#!/usr/bin/env bash
# terse.lightning and terse.huggingface with Lightning and transformers from PyPI, in a virtual environment. Not part of
# tests/run.sh: it needs PyPI.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/frameworks.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# The newest of each that work with Debian's torch 1.13, which was built for NumPy 1.
readonly PACKAGES=('lightning>=2.1,<2.2' 'pytorch-lightning<2.2' 'torchmetrics<1.4' 'transformers>=4.36,<4.40' 'accelerate<0.30' 'numpy<2')

usage() {
  cat <<'USAGE'
usage: tests/frameworks.sh [--build DIR] [--venv DIR] [--help]

Makes a virtual environment with Lightning and transformers beside Debian's torch, unless it is there, and runs
tests/python/lightning_test.py and huggingface_test.py in it: a coordinator and two clients as processes, of which one is killed. It
takes about three minutes, and downloads no model and no data.

  --build DIR   the build whose programs and package to test (default: build/release)
  --venv DIR    the virtual environment (default: build/frameworks)
USAGE
}

parse_arguments() {
  build=$root/build/release venv=$root/build/frameworks
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --build) build=$(absolute "$(value_of "$@")"); shift 2 ;;
      --venv) venv=$(absolute "$(value_of "$@")"); shift 2 ;;
      *) unknown_argument "$1" ;;
    esac
  done
  [[ -d "$build/python/terse" ]] || fail "there is no package in '$build/python'; build the target terse_python_codecs"
  [[ -x "$build/bin/terse-coordinator" ]] || fail "there is no terse-coordinator in '$build/bin'; build it"
}

make_environment() {
  [[ ! -x "$venv/bin/accelerate" ]] || return 0
  say "installing Lightning and transformers into $venv"
  /usr/bin/python3 -m venv --system-site-packages "$venv"
  "$venv/bin/pip" install --quiet "${PACKAGES[@]}"
}

version_of() {
  "$venv/bin/python" -c "import importlib.metadata; print(importlib.metadata.version('$1'))"
}

main() {
  parse_arguments "$@"
  make_environment
  say "Lightning $(version_of lightning), transformers $(version_of transformers)"
  export PYTHONPATH=$build/python:$root/tests/python TERSE_BIN=$build/bin OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1
  local test
  for test in lightning huggingface; do
    "$venv/bin/python" "$root/tests/python/${test}_test.py" "$build/bin" || fail "${test}_test.py failed, as above"
  done
  say "passed"
}

main "$@"
