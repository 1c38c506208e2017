#!/usr/bin/env bash
# Terse in one command: packages, build, a coordinator and its clients on this machine, a line per round, the summary.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
readonly here root
readonly TERSE_PROGRAM=deploy/demo.sh
# shellcheck source=deploy/lib.sh
source "$here/lib.sh"

usage() {
  cat <<'USAGE'
usage: deploy/demo.sh [--run FILE] [--data DIR] [--clients N] [--name NAME] [--out DIR] [--device auto|cpu|cuda]
                      [--listen ADDR] [--admin ADDR] [--bin DIR] [--help]

Trains a model with a coordinator and N client processes on this machine, each with one thread, over gRPC on the
loopback interface. Installs the Debian packages that are missing and builds Terse first. Ends with a summary table and
leaves
  runs/NAME/  run.toml  coordinator/ (the database and the checkpoints)  clients/  logs/
              model.pt  model.safetensors  rounds.csv  accuracy_vs_bytes.svg  summary.json

  --run FILE      the run (default: deploy/runs/demo.toml)
  --data DIR      folder of the data set (default: the digits that are built in, no download)
  --clients N     number of clients (default: rounds.clients of the run file, 4 when it says nothing)
  --name NAME     name of the run and of its folder (default: the run file's)
  --out DIR       where run folders go (default: runs)
  --device D      where clients train (default: auto)
  --listen ADDR   the coordinator's address for clients (default: 127.0.0.1:0, a free port)
  --admin ADDR    the coordinator's address for tersectl (default: 127.0.0.1:0, a free port)
  --bin DIR       run the executables in DIR; installs and builds nothing

An unfinished run of the same name, file and data is resumed; anything else of that name is kept, and the new run
becomes NAME-2. Stop with Ctrl-C; the same command goes on from there.
USAGE
}

parse_arguments() {
  run_file=$root/deploy/runs/demo.toml data='' clients='' name='' out=$root/runs device=auto
  listen=127.0.0.1:0 admin=127.0.0.1:0 bin=''
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --run) run_file=$(value_of "$@"); shift 2 ;;
      --data) data=$(value_of "$@"); shift 2 ;;
      --clients) clients=$(value_of "$@"); shift 2 ;;
      --name) name=$(value_of "$@"); shift 2 ;;
      --out) out=$(value_of "$@"); shift 2 ;;
      --device) device=$(value_of "$@"); shift 2 ;;
      --listen) listen=$(value_of "$@"); shift 2 ;;
      --admin) admin=$(value_of "$@"); shift 2 ;;
      --bin) bin=$(value_of "$@"); shift 2 ;;
      *) fail "unknown argument '$1'; see deploy/demo.sh --help" ;;
    esac
  done
  check_inputs "$run_file" "$data" "$clients"
  [[ "$device" =~ ^(auto|cpu|cuda)$ ]] || fail "--device must be auto, cpu or cuda, not '$device'"
  [[ -z "$data" ]] || data=$(absolute "$data")
  out=$(absolute "$out")
  [[ -n "$clients" ]] || clients=$(run_file_value "$run_file" rounds clients)
  [[ -n "$name" ]] || name=$(run_file_value "$run_file" '' name)
  clients=${clients:-4}
}

prepare_executables() {
  if [[ -z "$bin" ]]; then
    "$here/build.sh"
    bin=$root/build/release/bin
  fi
  local executable
  for executable in terse-coordinator terse-client tersectl; do
    [[ -x "$bin/$executable" ]] || fail "no executable '$bin/$executable'; run deploy/build.sh"
  done
}

# The processes of this run: name and log by process id.
declare -A child_name=() child_log=()

# start NAME COMMAND...: in the background, with its own log; it also ends when this script is killed.
start() {
  local process_name=$1 log=$run_folder/logs/$1.log
  shift
  setpriv --pdeathsig TERM "$@" >>"$log" 2>&1 </dev/null &
  child_name[$!]=$process_name
  child_log[$!]=$log
}

forget() {
  unset "child_name[$1]" "child_log[$1]"
}

alive() {
  kill -0 "$1" 2>/dev/null
}

stop_children() {
  local pid
  for pid in "${!child_name[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for _ in {1..100}; do
    local left=0
    for pid in "${!child_name[@]}"; do ! alive "$pid" || left=1; done
    [[ $left -eq 1 ]] || return 0
    sleep 0.1
  done
  for pid in "${!child_name[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}

interrupted() {
  trap - INT TERM
  echo >&2
  printf '%s: stopped; the same command resumes the run in %s\n' "$TERSE_PROGRAM" "${run_folder:-its folder}" >&2
  exit "$1"
}

# process_ended PID RC: nobody may end before the run does, except a client that has seen the run's end.
process_ended() {
  local ended_name=${child_name[$1]} ended_log=${child_log[$1]}
  forget "$1"
  [[ "$ended_name" == client-* && "$2" -eq 0 ]] && return 0
  fail "$ended_name ended before the run did (exit $2); its log is $ended_log" "$ended_log"
}

start_coordinator() {
  local ready=$run_folder/ready.json
  rm -f "$ready"
  start coordinator "$bin/terse-coordinator" --run "$run_folder/run.toml" --state "$run_folder/coordinator" \
    ${data:+--data "$data"} --listen "$listen" --admin "$admin" --ready-file "$ready"
  coordinator=$!
  local rc=0
  for _ in {1..600}; do
    [[ ! -s "$ready" ]] || break
    if ! alive "$coordinator"; then
      wait "$coordinator" || rc=$?
      process_ended "$coordinator" "$rc"
    fi
    sleep 0.1
  done
  [[ -s "$ready" ]] || fail "the coordinator did not serve within 60 s" "${child_log[$coordinator]}"
  listen=$(ready_value "$ready" listen)
  admin=$(ready_value "$ready" admin)
  rm -f "$ready"
  [[ -n "$listen" && -n "$admin" ]] || fail "the coordinator wrote no address into its ready file"
}

ready_value() {
  sed -n "s/.*\"$2\"[ ]*:[ ]*\"\([^\"]*\)\".*/\1/p" "$1"
}

start_clients() {
  local k
  for ((k = 1; k <= clients; k++)); do
    mkdir -p "$run_folder/clients/client-$k"
    start "client-$k" "$bin/terse-client" --coordinator "$listen" --name "client-$k" ${data:+--data "$data"} \
      --state "$run_folder/clients/client-$k" --device "$device" --threads 1
  done
}

# Takes note of every process that has ended. Sets watch_rc once the watch is among them.
reap() {
  local pid rc
  for pid in "${!child_name[@]}"; do
    alive "$pid" && continue
    rc=0
    wait "$pid" || rc=$?
    if [[ "${child_name[$pid]}" == watch ]]; then
      watch_rc=$rc
      forget "$pid"
    else
      process_ended "$pid" "$rc"
    fi
  done
}

# Shows the rounds until the run ends, and fails as soon as a process ends before that.
follow() {
  watch_rc=''
  setpriv --pdeathsig TERM "$bin/tersectl" --admin "$admin" watch </dev/null &
  child_name[$!]=watch
  child_log[$!]=''
  while [[ -z "$watch_rc" ]]; do
    sleep 0.2
    reap
  done
  [[ "$watch_rc" -eq 0 ]] && return 0
  # A watch that breaks is mostly the coordinator's end, seen from the other side: that is the better message.
  sleep 1
  reap
  fail "tersectl watch ended with exit $watch_rc before the run did" "${child_log[$coordinator]}"
}

# The clients end by themselves when the run has.
wait_for_clients() {
  for _ in {1..300}; do
    reap
    [[ ${#child_name[@]} -gt 1 ]] || return 0
    sleep 0.2
  done
  fail "$((${#child_name[@]} - 1)) clients still run 60 s after the run's end; see $run_folder/logs"
}

finish() {
  local rc=0 export_log=$run_folder/logs/export.log
  wait_for_clients
  "$bin/tersectl" --admin "$admin" export --out "$run_folder" >"$export_log" 2>&1 </dev/null ||
    fail "tersectl could not export the run" "$export_log"
  echo
  "$bin/tersectl" --admin "$admin" summary </dev/null || fail "tersectl could not summarise the run"
  "$bin/tersectl" --admin "$admin" stop --shutdown >/dev/null </dev/null ||
    fail "tersectl could not stop the coordinator"
  wait "$coordinator" || rc=$?
  [[ $rc -eq 0 ]] || fail "the coordinator ended with exit $rc" "${child_log[$coordinator]}"
  forget "$coordinator"
}

main() {
  parse_arguments "$@"
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM
  trap stop_children EXIT
  prepare_executables
  open_run_folder "$out" "$name" "$run_file" "$clients" "$data"
  mkdir -p "$run_folder/logs" "$run_folder/clients"
  # One thread a process: four clients on two cores gain nothing from more.
  export OMP_NUM_THREADS=1
  start_coordinator
  start_clients
  say "$clients clients train '$run_name' with ${data:-the built-in digits}"
  follow
  finish
  say "results in $run_folder"
}

main "$@"
