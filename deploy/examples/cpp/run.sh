#!/usr/bin/env bash
# The coordinator and the clients of this example train on this machine; ends with how far the loss fell.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
readonly here root
readonly TERSE_PROGRAM=deploy/examples/cpp/run.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=deploy/processes.sh
source "$root/deploy/processes.sh"

usage() {
  cat <<'USAGE'
usage: deploy/examples/cpp/run.sh --build DIR [--bin DIR] [--out DIR] [--help]

Runs what CMake built of this folder: logistic-coordinator, and two logistic-client with data of their own.

  --build DIR   where CMake built this example
  --bin DIR     where tersectl is (default: build/release/bin)
  --out DIR     new folder for the run's files (default: runs/cpp-example)
USAGE
}

parse_arguments() {
  local build=''
  bin=$root/build/release/bin run_folder=$root/runs/cpp-example
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --build) build=$(value_of "$@"); shift 2 ;;
      --bin) bin=$(value_of "$@"); shift 2 ;;
      --out) run_folder=$(value_of "$@"); shift 2 ;;
      *) fail "unknown argument '$1'; see $TERSE_PROGRAM --help" ;;
    esac
  done
  [[ -n "$build" ]] || fail "--build is missing; see $TERSE_PROGRAM --help"
  coordinator_program=$build/logistic-coordinator
  client_program=$build/logistic-client
  run_folder=$(absolute "$run_folder")
  listen=127.0.0.1:0 admin=127.0.0.1:0
}

# Test losses of the first and the last round.
check_loss() {
  local losses
  losses=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "test_loss") c = i }
    NR == 2 { first = $c } END { print first, $c }' "$run_folder/rounds.csv")
  awk '{ exit !($2 < $1 / 2) }' <<<"$losses" || fail "the test loss did not fall by half: ${losses/ / to }"
  say "the test loss fell from ${losses/ / to }"
}

main() {
  parse_arguments "$@"
  trap stop_children EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  choose_executables "$bin"
  [[ ! -e "$run_folder" ]] || fail "'$run_folder' is there already; remove it or name another with --out"
  mkdir -p "$run_folder/logs"
  start_coordinator --run-file "$here/run.toml"
  start_clients "$(run_file_value "$here/run.toml" rounds clients)"
  follow
  wait_for_clients
  # This model has no TorchScript.
  export_run "$run_folder" --format npz
  stop_coordinator
  check_loss
}

main "$@"
