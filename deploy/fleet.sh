#!/usr/bin/env bash
# The demo in containers: builds the images, starts a coordinator and N clients with Docker, or two coordinators, a database
# and relays, follows the rounds, fetches the results and removes the containers again.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
readonly here root
readonly TERSE_PROGRAM=deploy/fleet.sh
# shellcheck source=deploy/lib.sh
source "$here/lib.sh"
# shellcheck source=deploy/compose/containers.sh
source "$here/compose/containers.sh"
readonly base_image=debian:bookworm-slim prometheus_image=terse-prometheus:local postgres_image=terse-postgres:local

usage() {
  cat <<'USAGE'
usage: deploy/fleet.sh [--run-file FILE] [--data DIR] [--clients N] [--relays 2] [--links CLASSES] [--name NAME]
                       [--out DIR] [--image NAME:TAG] [--no-build] [--help]

Trains a model with an authority, a coordinator, Prometheus and N clients in containers of this machine; the clients enrol
themselves, and each has a link of some class (docs/CONTAINERS.md). Needs a Docker Engine and either 'docker compose' or
docker-compose (Debian: apt-get install docker.io docker-compose). Ends with a summary table and leaves
  runs/NAME/  run.toml  coordinator/ (the database and the checkpoints)  logs/
              model.pt  model.safetensors  model.npz  rounds.csv  accuracy_vs_bytes.svg  summary.json  config.json

  --run-file FILE    the run (default: deploy/runs/demo.toml)
  --data DIR         folder of the data set, readable by everyone (default: the digits that are built in)
  --clients N        number of client containers (default: rounds.clients of the run file, 4 when it says nothing)
  --relays 2         two relays between the clients and the coordinator, a second coordinator that stands by, and PostgreSQL
                     with a standby for the runs of both; coordinator/ is then a backup of the run
  --links CLASSES    classes of the clients' links, in turn: fast, 4g, 3g, flaky (default: "fast 4g 3g flaky")
  --name NAME        name of the run and of its folder (default: the run file's name and -fleet)
  --out DIR          where run folders go (default: runs)
  --image NAME:TAG   the image to build and run (default: terse-fleet:local)
  --no-build         take the images as they are

Ports of this machine for the dashboard and Prometheus are free ones, or $TERSE_DASHBOARD and $TERSE_PROMETHEUS
(ADDRESS:PORT). Where no registry can be reached, deploy/base_image.sh makes the base image first.
USAGE
}

parse_arguments() {
  run_file=$root/deploy/runs/demo.toml data='' clients='' relays='' links='fast 4g 3g flaky' name='' out=$root/runs
  image=terse-fleet:local build=1
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --run-file) run_file=$(value_of "$@"); shift 2 ;;
      --data) data=$(value_of "$@"); shift 2 ;;
      --clients) clients=$(value_of "$@"); shift 2 ;;
      --relays) relays=$(value_of "$@"); shift 2 ;;
      --links) links=$(value_of "$@"); shift 2 ;;
      --name) name=$(value_of "$@"); shift 2 ;;
      --out) out=$(value_of "$@"); shift 2 ;;
      --image) image=$(value_of "$@"); shift 2 ;;
      --no-build) build=0; shift ;;
      *) unknown_argument "$1" ;;
    esac
  done
  check_inputs "$run_file" "$data" "$clients"
  [[ "$links" =~ ^(fast|4g|3g|flaky)( (fast|4g|3g|flaky))*$ ]] || fail "--links: fast, 4g, 3g and flaky, not '$links'"
  [[ -z "$data" ]] || data=$(absolute "$data")
  out=$(absolute "$out")
  [[ -n "$clients" ]] || clients=$(run_file_clients "$run_file" "$relays")
  [[ -n "$name" ]] || name=$(run_file_value "$run_file" '' name)-fleet
  [[ -z "$relays" || "$relays" == 2 ]] || fail "--relays: deploy/compose/relays.yml has 2 relays, not '$relays'; add more there"
  check_relays "$relays" "$clients"
}

find_docker() {
  command -v docker >/dev/null || fail "no docker here; on Debian: apt-get install docker.io docker-compose"
  docker info >/dev/null 2>&1 ||
    fail "no Docker Engine answers; start it (systemctl start docker) or join its group (usermod -aG docker \$USER)"
  if docker compose version >/dev/null 2>&1; then
    compose_command=(docker compose)
  elif command -v docker-compose >/dev/null; then
    compose_command=(docker-compose)
  else
    fail "neither 'docker compose' nor docker-compose is here; on Debian: apt-get install docker-compose"
  fi
}

# docker_build IMAGE ARGUMENT...: quiet.
docker_build() {
  local log=$root/build/image.log
  docker build --force-rm -t "$@" >"$log" 2>&1 </dev/null || fail "the image $1 did not build; see $log" "$log"
}

build_image() {
  if [[ $build -eq 0 ]]; then
    docker image inspect "$image" >/dev/null 2>&1 || fail "no image '$image'; leave --no-build out"
    return 0
  fi
  local log=$root/build/image.log begin=$SECONDS
  mkdir -p "$root/build"
  if ! docker image inspect "$base_image" >/dev/null 2>&1 && ! docker pull "$base_image" >"$log" 2>&1 </dev/null; then
    fail "no base image $base_image and no registry to take it from; run deploy/base_image.sh first" "$log"
  fi
  say "building the images $image and $prometheus_image${relays:+ and $postgres_image} (the first time takes minutes)"
  docker_build "$prometheus_image" -f "$here/compose/prometheus.Dockerfile" "$here/compose"
  [[ -z "$relays" ]] || docker_build "$postgres_image" -f "$here/compose/postgres.Dockerfile" "$here/compose"
  docker_build "$image" --target fleet "$root"
  say "image $image, $(docker image inspect --format '{{.Size}}' "$image" | awk '{printf "%.2f GB", $1 / 1e9}'), after \
$((SECONDS - begin)) s"
}

# free_ports VARIABLE...: a free port of this machine for each dashboard that the user gave no address.
free_ports() {
  local variable
  for variable in "$@"; do export "$variable=${!variable:-127.0.0.1:0}"; done
}

# compose_files: sets `files`, the arguments of compose that name the files of this fleet.
compose_files() {
  files=(-f "$here/compose/fleet.yml" -f "$here/compose/ports.yml")
  [[ -z "$relays" ]] || files+=(-f "$here/compose/relays.yml" -f "$here/compose/relays-ports.yml")
  [[ -z "$data" ]] || files+=(-f "$here/compose/data.yml")
  [[ -z "$data" || -z "$relays" ]] || files+=(-f "$here/compose/relays-data.yml")
  free_ports TERSE_DASHBOARD TERSE_DASHBOARD_2 TERSE_RELAY_DASHBOARD_1 TERSE_RELAY_DASHBOARD_2 TERSE_PROMETHEUS
}

compose() {
  TERSE_IMAGE=$image TERSE_PROMETHEUS_IMAGE=$prometheus_image TERSE_POSTGRES_IMAGE=$postgres_image TERSE_FLEET=$fleet \
    TERSE_DATA=$data TERSE_LINKS=$links COMPOSE_IGNORE_ORPHANS=1 \
    "${compose_command[@]}" -p "$project" "${files[@]}" "$@" </dev/null 2>>"$run_folder/logs/compose.log"
}

in_coordinator() {
  tersectl_in "$coordinator" "$@"
}

# Everything that was started goes, whatever happened; the logs stay in the run folder.
remove_fleet() {
  [[ -n "${project:-}" ]] || return 0
  [[ -z "${watch:-}" ]] || kill "$watch" 2>/dev/null || true
  compose logs --no-color >"$run_folder/logs/fleet.log" 2>&1 || true
  compose down --volumes --timeout 10 >>"$run_folder/logs/compose.log" 2>&1 || true
  # It belongs to the containers' user.
  docker run --rm --user 0 --network none --volume "$run_folder:/run" --entrypoint rm "$image" -rf /run/fleet ||
    printf '%s: remove %s yourself: it holds the keys of the fleet\n' "$TERSE_PROGRAM" "$fleet" >&2
}

interrupted() {
  trap - INT TERM
  printf '\n%s: stopped; the containers are removed and the run is not kept\n' "$TERSE_PROGRAM" >&2
  exit "$1"
}

# fail_with_container NAME ID TEXT: the end of a container's log, then the line.
fail_with_container() {
  local log=$run_folder/logs/$1.log
  docker logs "$2" >"$log" 2>&1 || true
  fail "$3" "$log"
}

start_fleet() {
  local log=$run_folder/logs/compose.log
  if ! compose up --detach --no-build --scale "client=$clients" >>"$log"; then
    compose logs --no-color coordinator >>"$log" || true
    fail "the containers did not start" "$log"
  fi
  find_containers "$relays"
  [[ -n "${coordinators[0]}" && ${#client_ids[@]} -eq $clients ]] ||
    fail "${#client_ids[@]} of $clients clients and the coordinator '${coordinators[0]}' were started" "$log"
  wait_for_coordinator
  say "the dashboard is https://$(docker port "$coordinator" 7780), for who has $fleet/observer (docs/CONTAINERS.md)"
}

# check_server ID STATES: fails unless the server's container is in one of the states.
check_server() {
  local state name
  state=$(container_state "$1")
  [[ ! "$state" =~ ^($2)\  ]] || return 0
  name=$(service_of "$1")
  fail_with_container "$name" "$1" "the $name ended before the run did ($state)"
}

# Nobody may end before the run does, except a client that has seen the run's end. Where there are two coordinators, one that
# finds no database or has lost its lease is started again.
check_containers() {
  local id state states=running
  [[ -z "$relays" ]] || states='running|restarting'
  for id in "${coordinators[@]}"; do check_server "$id" "$states"; done
  for id in "${databases[@]}" "${relay_ids[@]}"; do check_server "$id" running; done
  for id in "${client_ids[@]}"; do
    state=$(container_state "$id")
    [[ "$state" == running* || "$state" == 'exited 0' ]] ||
      fail_with_container "client-${id:0:12}" "$id" "client ${id:0:12} ended before the run did ($state)"
  done
}

wait_for_coordinator() {
  local begin=$SECONDS
  until find_coordinator; do
    check_containers
    [[ $((SECONDS - begin)) -lt 120 ]] ||
      fail_with_container coordinator "${coordinators[0]}" "no coordinator answered within two minutes"
    sleep 1
  done
}

# watch_rounds: until the run is over, or the coordinator that serves is gone, which is a failure.
watch_rounds() {
  local rc=0
  in_coordinator watch --lines &
  watch=$!
  while kill -0 "$watch" 2>/dev/null; do
    check_containers
    sleep 1
  done
  wait "$watch" || rc=$?
  watch=''
  check_containers
  return "$rc"
}

follow() {
  local before=''
  until watch_rounds; do
    before=$coordinator
    wait_for_coordinator
    [[ "$coordinator" != "$before" ]] ||
      fail_with_container coordinator "$coordinator" "tersectl watch failed before the run was over"
    say "the $(service_of "$coordinator") serves now"
  done
}

# The clients end by themselves when the run has.
wait_for_clients() {
  local id left
  for _ in {1..60}; do
    check_containers
    left=0
    for id in "${client_ids[@]}"; do
      [[ "$(container_state "$id")" == 'exited 0' ]] || left=$((left + 1))
    done
    [[ $left -gt 0 ]] || return 0
    sleep 1
  done
  fail "$left clients still run 60 s after the run's end; see $run_folder/logs/fleet.log"
}

# fetch FROM TO: of the coordinator that serves.
fetch() {
  docker cp "$coordinator:$1" "$2" >/dev/null 2>&1 || fail "docker cp could not fetch the results from the coordinator's $1"
}

fetch_results() {
  local export_log=$run_folder/logs/export.log
  wait_for_clients
  in_coordinator export --out /state/export >"$export_log" 2>&1 ||
    fail "tersectl could not export the run" "$export_log"
  [[ -z "$relays" ]] || show_relays || fail "tersectl could not list the relays' clients"
  echo
  in_coordinator summary || fail "tersectl could not summarise the run"
  fetch_state
  fetch /state/export/. "$run_folder"
}

# The state is copied once the coordinator has closed its database. A run in PostgreSQL is copied by a backup.
fetch_state() {
  if [[ -n "$relays" ]]; then
    in_coordinator backup --out /state/backup >>"$export_log" 2>&1 || fail "tersectl could not copy the run" "$export_log"
    fetch /state/backup/. "$run_folder/coordinator"
    return
  fi
  in_coordinator stop --shutdown >/dev/null || fail "tersectl could not stop the coordinator"
  [[ "$(timeout 60 docker wait "$coordinator")" == 0 ]] ||
    fail_with_container coordinator "$coordinator" "the coordinator did not end well after its shutdown"
  fetch /state/. "$run_folder/coordinator"
  rm -rf "$run_folder/coordinator/export"
}

main() {
  parse_arguments "$@"
  find_docker
  build_image
  # Containers take their state with them, so a fleet is never resumed: an existing folder is always another run's.
  open_run_folder "$out" "$name" "$run_file" "$clients" "${data:-embedded} in containers, process $$" "$relays"
  mkdir -p "$run_folder/logs"
  project=terse-$$ fleet=$run_folder/fleet
  compose_files
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM
  trap remove_fleet EXIT
  "$here/compose/prepare.sh" --run-file "$run_folder/run.toml" --clients "$clients" ${relays:+--relays "$relays"} \
    --image "$image" "$fleet"
  start_fleet
  say "$clients client containers${relays:+ behind $relays relays} train '$run_name' with ${data:-the built-in digits}"
  follow
  fetch_results
  say "results in $run_folder"
}

main "$@"
