# shellcheck shell=bash
# shellcheck disable=SC2154  # `work`, `project` and `files` are set by the script that sources this
# shellcheck disable=SC2034  # which uses what is set here
# Functions that the tests of fleets in containers share: images, what tersectl and Prometheus say, how a run ends. Sourced
# after deploy/lib.sh, deploy/compose/containers.sh and tests/checks.sh, never run. The script that sources this sets
# `project`, the name of the compose project, `files`, the arguments of docker-compose that name its files, and TERSE_FLEET; it
# has a function `usage`, and calls clean_up when it ends.

readonly image=terse-fleet:local prometheus_image=terse-prometheus:local postgres_image=terse-postgres:local

# check_machine: whether this machine can run containers and look into them.
check_machine() {
  [[ $EUID -eq 0 ]] || fail "it looks into containers' files and processes; run it as root"
  docker info >/dev/null 2>&1 || fail "no Docker Engine answers; start it (service docker start) and try again"
  local tool
  for tool in docker-compose curl python3; do
    command -v "$tool" >/dev/null || fail "$tool is missing; run: apt-get install $tool"
  done
}

# parse_arguments ARGUMENT...: sets `build`, `swarm` and `keep`.
parse_arguments() {
  build=1 swarm=1 keep=0
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --no-build) build=0; shift ;;
      --no-swarm) swarm=0; shift ;;
      --keep) keep=1; shift ;;
      *) fail "unknown argument '$1'; see $TERSE_PROGRAM --help" ;;
    esac
  done
  check_machine
}

# build_one IMAGE ARGUMENT...
build_one() {
  docker build -t "$@" >"$work/build.log" 2>&1 </dev/null || fail "the image $1 did not build" "$work/build.log"
  say "image $1, $(docker image inspect --format '{{.Size}}' "$1" | awk '{printf "%.0f MB", $1 / 1e6}')"
}

# run_file NAME ROUNDS CLIENTS QUORUM: rounds go on with a quorum after four seconds.
run_file() {
  cat <<RUN
name = "$1"
[model]
name = "lenet5_caffe"
[data]
name = "mnist"
partition = "iid"
[train]
local_steps = 2
batch_size = 16
[train.optimizer]
name = "adam"
learning_rate = 0.001
[codec]
name = "sbc"
density = 0.01
[rounds]
count = $2
clients = $3
quorum = $4
deadline_seconds = 4
evaluate_every = 20
[clients]
set_aside_after = 0
RUN
}

compose() {
  docker-compose -p "$project" "${files[@]}" "$@" </dev/null 2>>"$work/compose.log"
}

# tersectl where the coordinator is that serves.
ctl() {
  find_coordinator && tersectl_in "$coordinator" "$@"
}

# value EXPRESSION: of the JSON on standard input, which is `it`.
value() {
  python3 -c 'import json, sys; it = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

not() {
  ! "$@"
}

round() {
  ctl status --json | value 'it["round"]'
}

is_past_round() {
  [[ "$(round)" -gt "$1" ]]
}

# present_in CONTAINER: how many clients the coordinator or relay in the container has just now.
present_in() {
  tersectl_in "$1" clients --json | value 'sum(one["state"] != "away" for one in it)'
}

# has_clients N: of the coordinator that serves.
has_clients() {
  find_coordinator && [[ "$(present_in "$coordinator")" == "$1" ]]
}

is_over() {
  ctl status --json | value 'it["state"]' | grep -qi finished
}

all_clients_ended_well() {
  local one
  for one in "${client_ids[@]}"; do
    [[ "$(container_state "$one")" == 'exited 0' ]] || return 1
  done
}

# start_containers CLIENTS [RELAYS]: all services, from images that are there.
start_containers() {
  started=1
  compose up --detach --no-build --scale "client=$1" >>"$work/compose.log" || fail "it did not start" "$work/compose.log"
  find_containers "${2:-}"
  [[ ${#client_ids[@]} -eq $1 ]] || fail "${#client_ids[@]} of $1 clients were started" "$work/compose.log"
}

remove_containers() {
  started=0
  compose logs --no-color >"$work/fleet.log" || true
  compose down --volumes --timeout 10 || true
  rm -rf "$TERSE_FLEET"
}

look() {
  curl --silent --show-error --fail --max-time 10 --cacert "$TERSE_FLEET/observer/ca.crt" "$@"
}

has_metric() {
  local address
  address=http://$(docker port "$(of_service prometheus)" 9090 | head -n 1)
  curl --silent --get --data-urlencode "query=$1" "$address/api/v1/query" |
    value 'len(it["data"]["result"]) > 0' | grep -q True
}

# stack_has TEXT: a service of the stack and how many of its containers run, as "client 4/4".
stack_has() {
  docker stack services --format '{{.Name}} {{.Replicas}}' "$project" | grep -qx "${project}_$1"
}

# leave_swarm: if this test is in one. Nothing of the stack stays, its volumes neither.
leave_swarm() {
  [[ ${in_swarm:-0} -eq 1 ]] || return 0
  in_swarm=0
  docker stack rm "$project" >/dev/null 2>&1 || true
  docker swarm leave --force >/dev/null 2>&1 || true
  local volumes
  mapfile -t volumes < <(docker volume ls --quiet --filter "label=com.docker.stack.namespace=$project")
  for _ in {1..30}; do
    docker volume rm --force "${volumes[@]}" >/dev/null 2>&1 && break
    sleep 1
  done
}

# What the script leaves: its logs, if it failed or was told to keep them.
clean_up() {
  local code=$?
  leave_swarm
  [[ ${started:-0} -eq 0 ]] || remove_containers >/dev/null 2>&1
  if [[ $code -eq 0 && $keep -eq 0 ]]; then rm -rf "$work"; else say "logs in $work"; fi
}
