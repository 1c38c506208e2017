# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # variables that the script which sources this uses, and sets
# Functions that deploy/fleet.sh and the tests of fleets in containers share: which containers a fleet has, how they are, and
# which of its coordinators serves. Sourced, never run. The script that sources this sets `project`, the name of the compose
# project.

# tersectl_in CONTAINER ARGUMENT...: tersectl where a coordinator or a relay is, at its own socket.
tersectl_in() {
  docker exec "$1" tersectl "${@:2}" </dev/null
}

# container_state ID: "running 0", "exited 1", ...
container_state() {
  docker inspect --format '{{.State.Status}} {{.State.ExitCode}}' "$1" 2>/dev/null || echo 'removed 1'
}

# service_of ID: the name of the container's service in the compose files.
service_of() {
  docker inspect --format '{{index .Config.Labels "com.docker.compose.service"}}' "$1"
}

# of_service NAME: the ids of the service's containers, whether they run or not. Docker is asked, because docker-compose takes
# seconds to start on a busy machine.
of_service() {
  docker ps --all --quiet --no-trunc --filter "label=com.docker.compose.project=$project" \
    --filter "label=com.docker.compose.service=$1"
}

# find_containers [RELAYS]: sets `coordinators`, `databases`, `relay_ids` and `client_ids`, the containers' ids.
find_containers() {
  local number
  coordinators=("$(of_service coordinator)") databases=() relay_ids=()
  mapfile -t client_ids < <(of_service client)
  [[ -n "${1:-}" ]] || return 0
  coordinators+=("$(of_service coordinator-2)")
  for number in 1 2; do databases+=("$(of_service "database-$number")"); done
  for number in $(seq "$1"); do relay_ids+=("$(of_service "relay-$number")"); done
}

# find_coordinator: sets `coordinator` to the one of `coordinators` that serves; fails while none does.
find_coordinator() {
  local one
  for one in "${coordinators[@]}"; do
    tersectl_in "$one" --timeout 5 status >/dev/null 2>&1 || continue
    coordinator=$one
    return 0
  done
  return 1
}

# show_relays: the clients of each relay, as it knows them itself.
show_relays() {
  local one
  for one in "${relay_ids[@]}"; do
    printf '\nclients of %s:\n' "$(service_of "$one")"
    tersectl_in "$one" --timeout 120 clients || return 1
  done
}
