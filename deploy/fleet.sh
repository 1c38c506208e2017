#!/usr/bin/env bash
# The demo in containers: builds the image, starts one coordinator and N clients with Docker, follows the rounds,
# fetches the results and removes the containers again.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
readonly here root
readonly TERSE_PROGRAM=deploy/fleet.sh
# shellcheck source=deploy/lib.sh
source "$here/lib.sh"
readonly base_image=debian:bookworm-slim prometheus_image=terse-prometheus:local

usage() {
  cat <<'USAGE'
usage: deploy/fleet.sh [--run-file FILE] [--data DIR] [--clients N] [--links CLASSES] [--name NAME] [--out DIR]
                       [--image NAME:TAG] [--no-build] [--help]

Trains a model with an authority, a coordinator, Prometheus and N clients in containers of this machine; the clients enrol
themselves, and each has a link of some class (docs/CONTAINERS.md). Needs a Docker Engine and either 'docker compose' or
docker-compose (Debian: apt-get install docker.io docker-compose). Ends with a summary table and leaves
  runs/NAME/  run.toml  coordinator/ (the database and the checkpoints)  logs/
              model.pt  model.safetensors  model.npz  rounds.csv  accuracy_vs_bytes.svg  summary.json  config.json

  --run-file FILE    the run (default: deploy/runs/demo.toml)
  --data DIR         folder of the data set, readable by everyone (default: the digits that are built in)
  --clients N        number of client containers (default: rounds.clients of the run file, 4 when it says nothing)
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
  run_file=$root/deploy/runs/demo.toml data='' clients='' links='fast 4g 3g flaky' name='' out=$root/runs
  image=terse-fleet:local build=1
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --run-file) run_file=$(value_of "$@"); shift 2 ;;
      --data) data=$(value_of "$@"); shift 2 ;;
      --clients) clients=$(value_of "$@"); shift 2 ;;
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
  [[ -n "$clients" ]] || clients=$(run_file_value "$run_file" rounds clients)
  [[ -n "$name" ]] || name=$(run_file_value "$run_file" '' name)-fleet
  clients=${clients:-4}
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
  say "building the images $image and $prometheus_image (the first time takes minutes)"
  docker_build "$prometheus_image" -f "$here/compose/prometheus.Dockerfile" "$here/compose"
  docker_build "$image" --target fleet "$root"
  say "image $image, $(docker image inspect --format '{{.Size}}' "$image" | awk '{printf "%.2f GB", $1 / 1e9}'), after \
$((SECONDS - begin)) s"
}

compose() {
  local files=(-f "$here/compose/fleet.yml" -f "$here/compose/ports.yml")
  [[ -z "$data" ]] || files+=(-f "$here/compose/data.yml")
  TERSE_IMAGE=$image TERSE_PROMETHEUS_IMAGE=$prometheus_image TERSE_FLEET=$fleet TERSE_DATA=$data TERSE_LINKS=$links \
    TERSE_DASHBOARD=${TERSE_DASHBOARD:-127.0.0.1:0} TERSE_PROMETHEUS=${TERSE_PROMETHEUS:-127.0.0.1:0} COMPOSE_IGNORE_ORPHANS=1 \
    "${compose_command[@]}" -p "$project" "${files[@]}" "$@" </dev/null 2>>"$run_folder/logs/compose.log"
}

in_coordinator() {
  docker exec "$coordinator" tersectl "$@" </dev/null
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

# container_state ID: "running 0", "exited 1", ...
container_state() {
  docker inspect --format '{{.State.Status}} {{.State.ExitCode}}' "$1" 2>/dev/null || echo 'removed 1'
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
    coordinator=$(compose ps -q coordinator 2>/dev/null || true)
    [[ -z "$coordinator" ]] || docker logs "$coordinator" >>"$log" 2>&1 || true
    fail "the containers did not start" "$log"
  fi
  coordinator=$(compose ps -q coordinator)
  mapfile -t client_ids < <(compose ps -q client)
  [[ -n "$coordinator" && ${#client_ids[@]} -eq $clients ]] ||
    fail "${#client_ids[@]} of $clients clients and the coordinator '$coordinator' were started" "$log"
  wait_for_coordinator
  say "the dashboard is https://$(docker port "$coordinator" 7780), for who has $fleet/observer (docs/CONTAINERS.md)"
}

# Nobody may end before the run does, except a client that has seen the run's end.
check_containers() {
  local id state
  state=$(container_state "$coordinator")
  [[ "$state" == running* ]] ||
    fail_with_container coordinator "$coordinator" "the coordinator ended before the run did ($state)"
  for id in "${client_ids[@]}"; do
    state=$(container_state "$id")
    [[ "$state" == running* || "$state" == 'exited 0' ]] ||
      fail_with_container "client-${id:0:12}" "$id" "client ${id:0:12} ended before the run did ($state)"
  done
}

wait_for_coordinator() {
  for _ in {1..60}; do
    check_containers
    ! in_coordinator status >/dev/null 2>&1 || return 0
    sleep 1
  done
  fail_with_container coordinator "$coordinator" "the coordinator did not answer within a minute"
}

follow() {
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
  [[ $rc -eq 0 ]] ||
    fail_with_container coordinator "$coordinator" "tersectl watch ended with exit $rc before the run did"
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

# The state is copied once the coordinator has closed its database.
fetch_results() {
  local export_log=$run_folder/logs/export.log
  wait_for_clients
  in_coordinator export --out /state/export >"$export_log" 2>&1 ||
    fail "tersectl could not export the run" "$export_log"
  echo
  in_coordinator summary || fail "tersectl could not summarise the run"
  in_coordinator stop --shutdown >/dev/null || fail "tersectl could not stop the coordinator"
  [[ "$(timeout 60 docker wait "$coordinator")" == 0 ]] ||
    fail_with_container coordinator "$coordinator" "the coordinator did not end well after its shutdown"
  docker cp "$coordinator:/state/." "$run_folder/coordinator" >/dev/null 2>&1 ||
    fail "docker cp could not fetch the results from the coordinator's /state"
  mv "$run_folder"/coordinator/export/* "$run_folder/"
  rmdir "$run_folder/coordinator/export"
}

main() {
  parse_arguments "$@"
  find_docker
  build_image
  # Containers take their state with them, so a fleet is never resumed: an existing folder is always another run's.
  open_run_folder "$out" "$name" "$run_file" "$clients" "${data:-embedded} in containers, process $$"
  mkdir -p "$run_folder/logs"
  project=terse-$$ fleet=$run_folder/fleet
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM
  trap remove_fleet EXIT
  "$here/compose/prepare.sh" --run-file "$run_folder/run.toml" --clients "$clients" --image "$image" "$fleet"
  start_fleet
  say "$clients client containers train '$run_name' with ${data:-the built-in digits}"
  follow
  fetch_results
  say "results in $run_folder"
}

main "$@"
