#!/usr/bin/env bash
# The quickstart of the package for Python: installed into an environment of its own, and two clients with a training loop
# of their own, to the summary.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
readonly here root
readonly TERSE_PROGRAM=python/examples/run.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"
# shellcheck source=deploy/processes.sh
source "$root/deploy/processes.sh"

usage() {
  cat <<'USAGE'
usage: python/examples/run.sh [--out DIR] [--bin DIR] [--help]

Builds the programs, makes a virtual environment, installs the package of python/ into it with pip, starts a coordinator, makes the
run with create_run.py, and trains it with two processes of quickstart.py. Ends with the run's summary.

  --out DIR   new folder for everything (default: runs/python-quickstart)
  --bin DIR   the programs in DIR; builds none and installs no Debian package
USAGE
}

parse_arguments() {
  run_folder=$root/runs/python-quickstart bin=''
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --out) run_folder=$(value_of "$@"); shift 2 ;;
      --bin) bin=$(value_of "$@"); shift 2 ;;
      *) fail "unknown argument '$1'; see $TERSE_PROGRAM --help" ;;
    esac
  done
  run_folder=$(absolute "$run_folder")
  listen=127.0.0.1:0 admin=unix:$run_folder/admin.sock
}

# Sets python to the environment's, which also sees Debian's torch.
install_package() {
  local log=$run_folder/logs/install.log
  python=$run_folder/venv/bin/python
  say "installing the package (log: $log)"
  /usr/bin/python3 -m venv --system-site-packages "$run_folder/venv" >"$log" 2>&1 ||
    fail "no virtual environment could be made; install python3-venv" "$log"
  "$python" -m pip install --quiet --config-settings="cmake.define.TERSE_PREBUILT=$(absolute "$bin")" \
    --config-settings="build-dir=$run_folder/build" "$root/python" >>"$log" 2>&1 </dev/null ||
    fail "pip could not install $root/python" "$log"
}

main() {
  parse_arguments "$@"
  trap stop_children EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  [[ -n "$bin" ]] || terse_install_packages build python
  choose_executables "$bin"
  [[ ! -e "$run_folder" ]] || fail "'$run_folder' is there already; remove it or name another with --out"
  mkdir -p "$run_folder/logs"
  export OMP_NUM_THREADS=1
  unset TERSE_BIN PYTHONPATH  # what runs is what was installed
  install_package
  start_coordinator
  "$python" "$here/create_run.py" "$admin" "$run_folder/run" || fail "the run could not be made"
  local k
  for k in 1 2; do
    start "client-$k" "$python" "$here/quickstart.py" "$listen" "$run_folder/client-$k" "$k"
  done
  follow
  wait_for_clients
  ctl status
  stop_coordinator
  tail -n 1 "$run_folder"/logs/client-?.log
  say "results in $run_folder"
}

main "$@"
