#!/usr/bin/env bash
# A model and data that come from Python: exported, trained by a fleet on this machine, and opened in Python again.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
readonly here root
readonly TERSE_PROGRAM=deploy/examples/python/run.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=deploy/processes.sh
source "$root/deploy/processes.sh"

usage() {
  cat <<'USAGE'
usage: deploy/examples/python/run.sh [--out DIR] [--clients N] [--python PROGRAM] [--bin DIR] [--help]

Exports a model and data with export_model.py, starts a coordinator without a run, makes the run of run.toml with
`tersectl run create --model`, trains it with N clients that allow this one model, exports it, and lets check_result.py
open all that was exported.

  --out DIR         new folder for everything (default: runs/python-example)
  --clients N       number of clients (default: run.toml's)
  --python PROGRAM  a Python with torch and numpy (default: python3 or /usr/bin/python3, whichever has them)
  --bin DIR         run the executables in DIR; installs and builds nothing
USAGE
}

parse_arguments() {
  run_folder=$root/runs/python-example clients='' python='' bin=''
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --out) run_folder=$(value_of "$@"); shift 2 ;;
      --clients) clients=$(value_of "$@"); shift 2 ;;
      --python) python=$(value_of "$@"); shift 2 ;;
      --bin) bin=$(value_of "$@"); shift 2 ;;
      *) fail "unknown argument '$1'; see $TERSE_PROGRAM --help" ;;
    esac
  done
  check_inputs "$here/run.toml" '' "$clients"
  [[ -n "$clients" ]] || clients=$(run_file_value "$here/run.toml" rounds clients)
  run_folder=$(absolute "$run_folder")
  listen=127.0.0.1:0 admin=127.0.0.1:0
}

# Sets python to one that can export a model.
choose_python() {
  local candidate
  for candidate in ${python:-python3 /usr/bin/python3}; do
    python=$candidate
    "$candidate" -c 'import numpy, torch' 2>/dev/null </dev/null && return 0
  done
  fail "'$python' has no torch and numpy; install python3-torch and python3-numpy, or name another with --python"
}

main() {
  parse_arguments "$@"
  trap stop_children EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  choose_python
  choose_executables "$bin"
  [[ ! -e "$run_folder" ]] || fail "'$run_folder' is there already; remove it or name another with --out"
  mkdir -p "$run_folder/logs"
  export OMP_NUM_THREADS=1
  "$python" "$here/export_model.py" "$run_folder"
  # On a port of this machine nobody is known by name.
  start_coordinator --data "$run_folder/data" --allow-models any
  adjusted_run_file "$here/run.toml" python-example "$clients" >"$run_folder/run.toml"
  create_run "$run_folder/run.toml" "$run_folder/model.pt"
  # A TorchScript model is code: each client says which one it trusts.
  start_clients "$clients" --data "$run_folder/data" --allow-model "$model_hash"
  follow
  wait_for_clients
  export_run "$run_folder"
  stop_coordinator
  "$python" "$here/check_result.py" "$run_folder"
  say "results in $run_folder"
}

main "$@"
