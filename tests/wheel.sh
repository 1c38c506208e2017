#!/usr/bin/env bash
# The wheels of the package for Python on bare machines: Debian 12 with Python 3.11, and Debian 13 with a later one. Not part of
# tests/run.sh: it needs root, a Debian mirror and PyPI.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/wheel.sh
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/bare_machine.sh
source "$root/tests/bare_machine.sh"
readonly SUITES=(bookworm trixie)

usage() {
  cat <<'USAGE'
usage: tests/wheel.sh [--mirror URL] [--cache DIR] [--help] DIR

Installs the wheels that deploy/wheel.sh made in DIR, and NumPy, into a virtual environment on a bare Debian 12 and a bare Debian 13: pip
takes the one for CPython 3.11 there, and the one for the stable ABI here. Runs what is in it: the client and tersectl start with the
libraries that are in the wheel, a run file that Python made is valid, and an update becomes a message and comes back.

  --mirror URL   Debian mirror (default: the one in /etc/apt)
  --cache DIR    the bare systems, kept between runs (default: ~/.cache/terse-bare)
USAGE
}

parse_arguments() {
  wheels='' mirror=$(mirror_of_apt) cache=$(default_cache)
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --mirror) mirror=$(value_of "$@"); shift 2 ;;
      --cache) cache=$(absolute "$(value_of "$@")"); shift 2 ;;
      -*) unknown_argument "$1" ;;
      *) wheels=$(absolute "$1"); shift ;;
    esac
  done
  compgen -G "$wheels/*.whl" >/dev/null || fail "there are no wheels in '$wheels'; deploy/wheel.sh makes some"
  check_bare
}

try_wheel() {
  local log=$work/wheel.log
  share_pip_settings
  mkdir "$system/root/wheels"
  cp "$wheels"/*.whl "$system/root/wheels/"
  cp "$root/tests/python/wheel_check.py" "$system/root/"
  on_machine /root sh -ec 'apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends python3-venv
    python3 -m venv venv' >"$log" 2>&1 || fail "no virtual environment on Debian ($suite)" "$log"
  on_machine /root venv/bin/pip install --quiet --no-deps --no-index --find-links wheels terse >"$log" 2>&1 ||
    fail "pip could not install a wheel on Debian ($suite)" "$log"
  on_machine /root env "${pip_settings[@]}" venv/bin/pip install --quiet numpy >"$log" 2>&1 ||
    fail "pip could not install NumPy on Debian ($suite)" "$log"
  on_machine /root venv/bin/python wheel_check.py >"$log" 2>&1 || fail "the wheel does not work on Debian ($suite)" "$log"
  say "Debian $suite: $(tail -n 1 "$log")"
}

main() {
  parse_arguments "$@"
  enter_namespaces "$root/tests/wheel.sh" "$@"
  terse_install_packages packaging machines
  mkdir -p "$cache"
  trap 'leave_machine' EXIT
  for suite in "${SUITES[@]}"; do
    work=$(mktemp -d "$cache/work.XXXXXX")
    make_base
    make_machine
    try_wheel
    leave_machine
    system=''
  done
  say "passed"
}

main "$@"
