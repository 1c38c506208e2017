# shellcheck shell=bash
# shellcheck disable=SC2154  # variables that the script which sources this sets, as said below
# A coordinator and its clients as processes on this machine: what deploy/demo.sh and the examples share. Sourced after
# deploy/lib.sh, never run.
# The script that sources this sets `bin` (the folder of the executables), `run_folder` (with a folder logs), and
# `listen` and `admin` (addresses; port 0 takes a free one), may set `http` (the dashboard's), and traps EXIT with
# stop_children.

# Name and log of each child by its process id.
declare -A child_name=() child_log=()

# choose_executables DIR: sets `bin`; without DIR, installs and builds first. coordinator_program and client_program are
# those of DIR unless they are set.
choose_executables() {
  bin=$1
  if [[ -z "$bin" ]]; then
    "$root/deploy/build.sh" --preset programs
    bin=$root/build/programs/bin
  fi
  coordinator_program=${coordinator_program:-$bin/terse-coordinator}
  client_program=${client_program:-$bin/terse-client}
  local executable
  for executable in "$coordinator_program" "$client_program" "$bin/tersectl"; do
    [[ -x "$executable" ]] || fail "no executable '$executable'; run deploy/build.sh"
  done
}

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

# process_ended PID RC: nobody may end before the run does, except a client that has seen the run's end.
process_ended() {
  local ended_name=${child_name[$1]} ended_log=${child_log[$1]}
  forget "$1"
  [[ "$ended_name" == client-* && "$2" -eq 0 ]] && return 0
  fail "$ended_name ended before the run did (exit $2); its log is $ended_log" "$ended_log"
}

# start_coordinator [ARGUMENT...]: waits until it serves. Sets coordinator, listen and admin with their ports, and
# dashboard to its URL, where there is one.
start_coordinator() {
  local ready=$run_folder/ready.json
  rm -f "$ready"
  start coordinator "$coordinator_program" --state "$run_folder/coordinator" --listen "$listen" --admin "$admin" \
    --ready-file "$ready" ${http:+--http "$http"} "$@"
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
  listen=$(json_value listen <"$ready")
  admin=$(json_value admin <"$ready")
  dashboard=$(json_value http <"$ready")
  rm -f "$ready"
  [[ -n "$listen" && -n "$admin" ]] || fail "the coordinator wrote no address into its ready file"
}

# json_value KEY: the string of that key in the JSON on standard input.
json_value() {
  sed -n "s/.*\"$1\"[ ]*:[ ]*\"\([^\"]*\)\".*/\1/p"
}

# ctl ARGUMENT...: tersectl against this coordinator.
ctl() {
  "$bin/tersectl" --admin "$admin" "$@" </dev/null
}

# create_run RUN_FILE MODEL: makes the run, which trains the TorchScript module MODEL. Sets model_hash, by which clients
# are told to trust it.
create_run() {
  local log=$run_folder/logs/create.log
  ctl run create --run-file "$1" --model "$2" --json >"$log" 2>&1 || fail "tersectl could not make the run" "$log"
  model_hash=$(json_value model_hash <"$log")
}

# start_clients COUNT [ARGUMENT...]: client-1 to client-COUNT, one thread each.
start_clients() {
  local count=$1 k
  shift
  for ((k = 1; k <= count; k++)); do
    mkdir -p "$run_folder/clients/client-$k"
    start "client-$k" "$client_program" --coordinator "$listen" --name "client-$k" \
      --state "$run_folder/clients/client-$k" --threads 1 "$@"
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
  setpriv --pdeathsig TERM "$bin/tersectl" --admin "$admin" watch --lines </dev/null &
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

# export_run DIR [ARGUMENT...]: the model and the report as files.
export_run() {
  local log=$run_folder/logs/export.log
  ctl export --out "$@" >"$log" 2>&1 || fail "tersectl could not export the run" "$log"
}

stop_coordinator() {
  local rc=0
  ctl stop --shutdown >/dev/null || fail "tersectl could not stop the coordinator"
  wait "$coordinator" || rc=$?
  [[ $rc -eq 0 ]] || fail "the coordinator ended with exit $rc" "${child_log[$coordinator]}"
  forget "$coordinator"
}
