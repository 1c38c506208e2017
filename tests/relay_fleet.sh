#!/usr/bin/env bash
# A tree of relays in containers with a real Docker Engine: two coordinators on PostgreSQL with a synchronous standby, two
# relays and their clients, over TLS. The coordinator that serves, each of the relays, the standby and the primary of the
# database are killed while the run goes on, and nothing may be lost. Then the same files as a stack of a one-node swarm.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/relay_fleet.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=deploy/compose/containers.sh
source "$root/deploy/compose/containers.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"
# shellcheck source=tests/fleets.sh
source "$root/tests/fleets.sh"
readonly clients=6 relays=2 rounds=600 more_rounds=5

usage() {
  cat <<'USAGE'
usage: tests/relay_fleet.sh [--no-build] [--no-swarm] [--keep] [--help]

Builds the images (deploy/base_image.sh makes their base when there is none), starts a tree of relays in containers and
checks that it does what docs/CONTAINERS.md says, also while its processes are killed. Needs root, a Docker Engine of its own
to work with, docker-compose, curl.

  --no-build  take terse-fleet:local, terse-postgres:local and terse-prometheus:local as they are
  --no-swarm  leave the stack out: a machine can be in one swarm only
  --keep      leave the folder with all logs
USAGE
}

build_images() {
  "$root/deploy/base_image.sh"
  build_one $prometheus_image -f "$root/deploy/compose/prometheus.Dockerfile" "$root/deploy/compose"
  build_one $postgres_image -f "$root/deploy/compose/postgres.Dockerfile" "$root/deploy/compose"
  build_one $image --target fleet "$root"
}

start_tree() {
  run_file relay-test $rounds $clients 1 >"$work/run.toml"
  "$root/deploy/compose/prepare.sh" --run-file "$work/run.toml" --relays $relays --image "$image" "$TERSE_FLEET"
  start_containers $clients $relays
}

# sql DATABASE STATEMENT: the answer of the server in the container.
sql() {
  docker exec "$1" psql --username postgres --dbname terse --tuples-only --no-align --command "$2" </dev/null
}

says() {
  [[ "$("${@:2}")" == "$1" ]]
}

health_of() {
  docker exec "$1" terse-health </dev/null
}

is_healthy() {
  [[ "$(docker inspect --format '{{.State.Health.Status}}' "$1")" == healthy ]]
}

# How many clients both relays have together.
relayed() {
  local one count=0
  for one in "${relay_ids[@]}"; do count=$((count + $(present_in "$one"))); done
  echo "$count"
}

each_relay_has_clients() {
  local one
  for one in "${relay_ids[@]}"; do [[ "$(present_in "$one")" -ge 1 ]] || return 1; done
}

# The coordinator of the two that does not serve.
other_coordinator() {
  local one
  for one in "${coordinators[@]}"; do [[ "$one" == "$coordinator" ]] || echo "$one"; done
}

check_databases() {
  check "database-1 is the primary" says primary docker exec "${databases[0]}" terse-postgres role
  check "and database-2 its standby" says standby docker exec "${databases[1]}" terse-postgres role
  soon "which is synchronous" says sync sql "${databases[0]}" 'SELECT sync_state FROM pg_stat_replication'
  check "all sessions of coordinators and standby are TLS 1.3" says 'TLSv1.3' sql "${databases[0]}" \
    "SELECT DISTINCT version FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename IN ('terse', 'standby')"
  check "nobody comes in without TLS" not docker run --rm --network "${project}_default" --entrypoint psql $postgres_image \
    "host=database-1 user=terse dbname=terse sslmode=disable connect_timeout=5" --no-password --command 'SELECT 1'
}

check_places() {
  local one
  check "the other coordinator stands by" says 'stands by' health_of "$(other_coordinator)"
  for one in "${coordinators[@]}" "${databases[@]}" "${relay_ids[@]}"; do
    soon "$(service_of "$one") is healthy" is_healthy "$one"
  done
  check "each relay has clients" each_relay_has_clients
  check "no client is the coordinator's own" says $relays present_in "$coordinator"
  soon "Prometheus reads a coordinator and both relays" has_metric 'count(up{job="terse"} == 1) == 3'
  soon "and knows how many clients each relay has" has_metric "sum(terse_clients{instance=~\"relay.*\"}) == $clients"
}

# Sets `before` of the caller. While one coordinator takes over from the other, nobody answers for a moment.
read_round() {
  before=$(round)
}

# rounds_go_on TEXT: rounds are committed from now on.
rounds_go_on() {
  local before
  soon "a coordinator answers" read_round
  soon "rounds go on $1" is_past_round $((before + more_rounds))
}

kill_coordinator() {
  local killed before
  soon "a coordinator answers" read_round
  killed=$coordinator
  docker kill --signal KILL "$killed" >/dev/null
  local begin=$SECONDS
  soon "the other coordinator serves" find_coordinator
  say "after $((SECONDS - begin)) s"
  check "it is the other one" not test "$coordinator" = "$killed"
  check "no round is lost" is_past_round $((before - 1))
  soon "it has both relays" has_clients $relays
  rounds_go_on "with the other coordinator"
  docker start "$killed" >/dev/null
  soon "the killed coordinator stands by" says 'stands by' health_of "$killed"
}

# kill_relay INDEX OTHER: its clients go to the other one, and it comes back without them.
kill_relay() {
  local killed=${relay_ids[$1]} other=${relay_ids[$2]} name
  name=$(service_of "$killed")
  docker kill --signal KILL "$killed" >/dev/null
  soon "all clients of $name are with $(service_of "$other")" says $clients present_in "$other"
  rounds_go_on "without $name"
  docker start "$killed" >/dev/null
  soon "$name is back" is_healthy "$killed"
}

# Commits wait for the standby, and with them the rounds and the lease.
kill_standby() {
  local before
  docker kill --signal KILL "${databases[1]}" >/dev/null
  sleep 3
  before=$(round || true)
  sleep 5
  check "no round is committed without the standby" not is_past_round $((${before:-rounds} + 1))
  docker start "${databases[1]}" >/dev/null
  rounds_go_on "when it is back"
}

has_said() {
  grep -q "$2" <(docker logs "$1" 2>&1)
}

kill_database() {
  docker kill --signal KILL "${databases[0]}" >/dev/null
  check "the standby becomes the primary" docker exec "${databases[1]}" terse-postgres promote
  check "and says so" says primary docker exec "${databases[1]}" terse-postgres role
  rounds_go_on "with what was the standby"
  docker start "${databases[0]}" >/dev/null
  soon "the old primary refuses to start" has_said "${databases[0]}" 'database-2 was promoted and is the primary'
  compose rm --force --stop -v database-1 >>"$work/compose.log"
  docker volume rm "${project}_database-1" >/dev/null
  compose up --detach --no-build --no-deps database-1 >>"$work/compose.log"
  find_containers $relays
  soon "without its data it becomes the standby" says standby docker exec "${databases[0]}" terse-postgres role
  check "for which commits may wait again" docker exec "${databases[1]}" terse-postgres synchronous
  soon "and do" says sync sql "${databases[1]}" 'SELECT sync_state FROM pg_stat_replication'
}

resets_in() {
  tersectl_in "$1" clients --json | value 'sum(one["resets"] for one in it)'
}

check_end() {
  soon "three quarters of the rounds are committed" is_past_round $((rounds * 3 / 4))
  soon "the run is over" is_over
  soon "all clients ended with exit code 0" all_clients_ended_well
  ctl summary
  show_relays
  ctl clients
  check "$rounds rounds are committed" says $rounds eval "ctl status --json | value 'it[\"version\"]'"
  check "no residual of a relay was lost" says 0 resets_in "$coordinator"
  local one
  for one in "${relay_ids[@]}"; do check "none of a client of $(service_of "$one")" says 0 resets_in "$one"; done
  ctl export --out /state/export >"$work/export.log" 2>&1
  check "the model can be exported" docker exec "$coordinator" test -s /state/export/model.safetensors
}

# of_stack SERVICE: the container of a service of the stack.
of_stack() {
  docker ps -q --filter "name=^${project}_$1\\."
}

find_in_stack() {
  mapfile -t coordinators < <(of_stack coordinator && of_stack coordinator-2)
  [[ ${#coordinators[@]} -eq 2 ]] && find_coordinator
}

# Kubernetes and swarms make a new container of one that failed: the volumes stay, and so do the states.
try_swarm() {
  export TERSE_FLEET=$work/stack TERSE_CLIENTS=0
  run_file stack-test 250 4 1 >"$work/run.toml"
  "$root/deploy/compose/prepare.sh" --run-file "$work/run.toml" --relays $relays --image "$image" "$TERSE_FLEET"
  docker swarm init --advertise-addr 127.0.0.1
  in_swarm=1
  docker stack deploy --resolve-image never -c "$root/deploy/compose/fleet.yml" -c "$root/deploy/compose/relays.yml" \
    -c "$root/deploy/compose/swarm.yml" -c "$root/deploy/compose/relays-swarm.yml" "$project"
  soon "a coordinator of the stack serves" find_in_stack
  soon "both relays have joined it" has_clients $relays
  docker service scale --detach "${project}_client=4"
  soon "its clients run" stack_has 'client 4/4'
  soon "it trains" is_past_round 5
  docker kill --signal KILL "$(of_stack relay-1)" >/dev/null
  soon "a killed relay is replaced" stack_has 'relay-1 1/1'
  rounds_go_on "after a relay was replaced"
  docker stack services "$project"
  soon "the stack's run is over" is_over
  ctl summary
  leave_swarm
}

main() {
  parse_arguments "$@"
  work=$(mktemp -d -t terse-relays.XXXXXX) project=terse-relays-$$
  files=(-f "$root/deploy/compose/fleet.yml" -f "$root/deploy/compose/relays.yml" -f "$root/deploy/compose/ports.yml"
    -f "$root/deploy/compose/relays-ports.yml")
  export TERSE_FLEET=$work/fleet TERSE_IMAGE=$image TERSE_PROMETHEUS_IMAGE=$prometheus_image
  export TERSE_POSTGRES_IMAGE=$postgres_image TERSE_DASHBOARD=127.0.0.1:0 TERSE_DASHBOARD_2=127.0.0.1:0
  export TERSE_RELAY_DASHBOARD_1=127.0.0.1:0 TERSE_RELAY_DASHBOARD_2=127.0.0.1:0 TERSE_PROMETHEUS=127.0.0.1:0
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  local begin=$SECONDS
  [[ $build -eq 0 ]] || { step "images"; build_images; }
  step "a tree of $clients clients and $relays relays"
  start_tree
  soon "a coordinator serves" find_coordinator
  soon "all clients enrolled and joined a relay" says $clients relayed
  soon "rounds are committed" is_past_round 3
  check_databases
  check_places
  step "the coordinator that serves is killed"
  kill_coordinator
  step "a relay is killed"
  kill_relay 0 1
  step "the other relay is killed"
  kill_relay 1 0
  step "the standby of the database is killed"
  kill_standby
  step "the primary of the database is killed"
  kill_database
  step "the rest of the run"
  check_end
  remove_containers
  [[ $swarm -eq 0 ]] || { step "a swarm"; try_swarm; }
  step "done"
  say "all of it true, in $((SECONDS - begin)) s"
}

main "$@"
