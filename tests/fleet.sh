#!/usr/bin/env bash
# The images and the compose files with a real Docker Engine: a fleet of eight clients behind links of four classes, through
# rounds, a partition and a coordinator that is killed; then the same file as a stack of a one-node swarm.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/fleet.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=deploy/compose/containers.sh
source "$root/deploy/compose/containers.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"
# shellcheck source=tests/fleets.sh
source "$root/tests/fleets.sh"
readonly clients=8 rounds=80 partition_rounds=4

usage() {
  cat <<'USAGE'
usage: tests/fleet.sh [--no-build] [--no-swarm] [--keep] [--help]

Builds the images (deploy/base_image.sh makes their base when there is none), starts a fleet in containers and checks
that it does what docs/CONTAINERS.md says. Needs root, a Docker Engine of its own to work with, docker-compose, curl.

  --no-build  take terse-fleet:local and terse-prometheus:local as they are
  --no-swarm  leave the stack out: a machine can be in one swarm only
  --keep      leave the folder with all logs
USAGE
}

build_images() {
  "$root/deploy/base_image.sh"
  build_one $prometheus_image -f "$root/deploy/compose/prometheus.Dockerfile" "$root/deploy/compose"
  build_one terse:local "$root"
  build_one tersectl:local --target tersectl "$root"
  build_one $image --target fleet "$root"
}

start_fleet() {
  run_file fleet-test $rounds $clients 4 >"$work/run.toml"
  "$root/deploy/compose/prepare.sh" --run-file "$work/run.toml" --image "$image" "$TERSE_FLEET"
  start_containers $clients
  coordinator=${coordinators[0]}
}

# Prometheus' own tool: each alert fires when it should, and none while all is well.
test_alerts() {
  mkdir -p "$work/alerts"
  cp "$root/deploy/monitoring/alerts.yml" "$root/tests/monitoring/alerts_test.yml" "$work/alerts/"
  docker run --rm --user 0 --network none --volume "$work/alerts:/alerts:ro" --workdir /alerts --entrypoint promtool \
    $prometheus_image test rules alerts_test.yml
}

# Whether client $1 says that its link is of class $2. Not through a pipe: that would fail when grep has seen enough.
is_of_class() {
  grep -q "class $2\$" <(docker logs "$1" 2>&1)
}

# How many clients have the link class $1.
of_class() {
  local member count=0
  for member in "${client_ids[@]}"; do
    ! is_of_class "$member" "$1" || count=$((count + 1))
  done
  echo "$count"
}

first_of_class() {
  local member
  for member in "${client_ids[@]}"; do
    is_of_class "$member" "$1" || continue
    echo "$member"
    return
  done
}

check_links() {
  local class slow
  for class in fast 4g 3g flaky; do
    check "some of the links are $class" test "$(of_class $class)" -ge 1
  done
  slow=$(first_of_class 3g)
  docker exec --user 0 "$slow" tc qdisc show dev eth0 >"$work/qdisc.log"
  check "a 3g link sends 1 Mbit/s" grep -q 'tbf .*rate 1Mbit' "$work/qdisc.log"
  docker exec --user 0 "$slow" iptables -S >"$work/iptables.log"
  check "and loses packets in both directions" test "$(grep -c 'statistic --mode random --probability 0.0099' "$work/iptables.log")" = 2
  check "and gets 3 Mbit/s" grep -q 'hashlimit-above 375' "$work/iptables.log"
  check "a fast link is left alone" not grep -q tbf <(docker exec --user 0 "$(first_of_class fast)" tc qdisc show dev eth0)
}

# of_process CONTAINER NAME FIELD: of /proc/PID/status, in which the name is cut off after 15 characters.
of_process() {
  docker exec "$1" sh -c "grep -l '^Name:.$2\$' /proc/[0-9]*/status | head -n 1 | xargs sed -n 's/^$3:[[:space:]]*//p'"
}

check_rights() {
  check "a client trains as the user terse" grep -q '^10001' <(of_process "${client_ids[0]}" terse-client-to Uid)
  check "without a capability" grep -qx '0000000000000000' <(of_process "${client_ids[0]}" terse-client-to CapEff)
  check "and can get none" grep -qx '0000000000000000' <(of_process "${client_ids[0]}" terse-client-to CapBnd)
  check "the coordinator is the user terse" grep -q '^10001' <(of_process "$coordinator" terse-coordinat Uid)
  check "no client has the authority's key" not docker exec --user 0 "${client_ids[0]}" test -e /authority
  check "each client has a certificate of its own" test "$(docker exec "${client_ids[0]}" cat /state/tls/node.crt | md5sum)" != \
    "$(docker exec "${client_ids[1]}" cat /state/tls/node.crt | md5sum)"
}

check_dashboard() {
  local address certificate
  address=https://$(docker port "$coordinator" 7780 | head -n 1)
  certificate=(--cert "$TERSE_FLEET/observer/node.crt" --key "$TERSE_FLEET/observer/node.key")
  check "an observer sees the dashboard" look "${certificate[@]}" "$address/"
  check "and its figures" grep -q fleet-test <(look "${certificate[@]}" "$address/api/v1/runs")
  check "nobody else does" not look "$address/"
}

check_prometheus() {
  soon "Prometheus reads the coordinator" has_metric 'up{job="terse"} == 1'
  soon "and knows its rounds" has_metric 'sum(terse_rounds_total) > 3'
}

partition() {
  local network member before
  network=${project}_default
  for member in "${client_ids[@]:0:3}"; do docker network disconnect "$network" "$member"; done
  before=$(round)
  soon "three of eight clients are cut off" has_clients 5
  soon "$partition_rounds rounds commit without them" is_past_round $((before + partition_rounds))
  for member in "${client_ids[@]:0:3}"; do docker network connect "$network" "$member"; done
  soon "they come back" has_clients $clients
}

kill_coordinator() {
  local before
  before=$(round)
  docker kill --signal KILL "$coordinator" >/dev/null
  sleep 2
  docker start "$coordinator" >/dev/null
  soon "the killed coordinator is back, at round $before or later" is_past_round $((before - 1))
  soon "with its fleet" has_clients $clients
}

check_end() {
  soon "the run is over" is_over
  soon "all clients ended with exit code 0" all_clients_ended_well
  ctl summary
  ctl clients
  ctl clients --json >"$work/clients.json"
  check "$rounds rounds are committed" test "$(ctl status --json | value 'it["version"]')" = $rounds
  check "no residual was lost" test "$(value 'sum(one["resets"] for one in it)' <"$work/clients.json")" = 0
  check "every client has updates in the model" test "$(value 'min(one["updates_applied"] for one in it) > 0' <"$work/clients.json")" = True
  docker exec "$coordinator" tersectl export --out /state/export >"$work/export.log" 2>&1
  check "the model can be exported" docker exec "$coordinator" test -s /state/export/model.safetensors
}

find_in_stack() {
  coordinator=$(docker ps -q --filter "name=${project}_coordinator")
  coordinators=("$coordinator")
  [[ -n "$coordinator" ]]
}

# The same file; Docker's own words go to standard output.
try_swarm() {
  export TERSE_FLEET=$work/stack TERSE_CLIENTS=4
  run_file stack-test $rounds 4 3 >"$work/run.toml"
  "$root/deploy/compose/prepare.sh" --run-file "$work/run.toml" --image "$image" "$TERSE_FLEET"
  docker swarm init --advertise-addr 127.0.0.1
  in_swarm=1
  docker stack deploy --resolve-image never -c "$root/deploy/compose/fleet.yml" -c "$root/deploy/compose/swarm.yml" "$project"
  soon "the stack's coordinator runs" find_in_stack
  soon "its clients run" stack_has 'client 4/4'
  soon "it trains" is_past_round 5
  docker stack services "$project"
  docker stack ps "$project"
  soon "the stack's run is over" is_over
  ctl summary
  check "$rounds rounds are committed" test "$(ctl status --json | value 'it["version"]')" = $rounds
  leave_swarm
}

main() {
  parse_arguments "$@"
  work=$(mktemp -d -t terse-fleet.XXXXXX) project=terse-test-$$
  files=(-f "$root/deploy/compose/fleet.yml" -f "$root/deploy/compose/ports.yml")
  export TERSE_FLEET=$work/fleet TERSE_IMAGE=$image TERSE_PROMETHEUS_IMAGE=$prometheus_image
  export TERSE_DASHBOARD=127.0.0.1:0 TERSE_PROMETHEUS=127.0.0.1:0
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  local begin=$SECONDS
  [[ $build -eq 0 ]] || { step "images"; build_images; }
  check "each alert fires when it should" test_alerts
  step "a fleet of $clients clients"
  start_fleet
  soon "all clients enrolled and joined" has_clients $clients
  check_links
  check_rights
  check_dashboard
  soon "rounds are committed" is_past_round 3
  check_prometheus
  step "a partition"
  partition
  step "a killed coordinator"
  kill_coordinator
  step "the rest of the run"
  check_end
  remove_containers
  [[ $swarm -eq 0 ]] || { step "a swarm"; try_swarm; }
  step "done"
  say "all of it true, in $((SECONDS - begin)) s"
}

main "$@"
