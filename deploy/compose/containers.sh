# shellcheck shell=bash
# Functions that deploy/fleet.sh and the tests of fleets in containers share: which containers a fleet has, how they are, and
# which of its coordinators serves. Sourced, never run. The script that sources this has a function `compose`.

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

# find_containers [RELAYS]: sets `coordinators`, `databases`, `relay_ids` and `client_ids`, the containers' ids. A service of
# one container has that one whether it runs or not.
find_containers() {
  local number
  coordinators=("$(compose ps -q coordinator)") databases=() relay_ids=()
  mapfile -t client_ids < <(compose ps -q client)
  [[ -n "${1:-}" ]] || return 0
  coordinators+=("$(compose ps -q coordinator-2)")
  for number in 1 2; do databases+=("$(compose ps -q database-$number)"); done
  for number in $(seq "$1"); do relay_ids+=("$(compose ps -q "relay-$number")"); done
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
    tersectl_in "$one" clients || return 1
  done
}
