#!/usr/bin/env bash
# Makes the folder that a fleet in containers lives of: its certificates, its invitation, its run.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
deploy=$(dirname "$here")
readonly here deploy
readonly TERSE_PROGRAM=deploy/compose/prepare.sh
# shellcheck source=deploy/lib.sh
source "$deploy/lib.sh"
readonly user=10001  # of the image

usage() {
  cat <<'USAGE'
usage: deploy/compose/prepare.sh [--run-file FILE] [--clients N] [--relays N] [--image NAME:TAG] [--host NAME]... [--help] DIR

Makes DIR for deploy/compose/fleet.yml, with tersectl in the image:

  DIR/run.toml      the run
  DIR/authority     the authority: whoever has it can let anybody into the fleet
  DIR/coordinator   the coordinator's TLS folder
  DIR/operator      an operator's, for tersectl from another machine, and DIR/observer an observer's, for a browser
  DIR/invitation    with which 1,000 clients may enrol within 30 days
  DIR/prometheus    settings, alerts and a certificate for Prometheus

With --relays, for deploy/compose/relays.yml, also

  DIR/relay-1 ...    the relays' TLS folders, and DIR/coordinator-2 that of the second coordinator
  DIR/relays.env     where the relays are, and how many clients each waits for
  DIR/database-1     the TLS folder of the PostgreSQL server, and DIR/database-2 its standby's
  DIR/passwords      the passwords of the servers' users
  DIR/store          how the coordinators get into the database: a password file, and the certificate that they believe
  DIR/database-authority   an authority of the servers alone, which the fleet does not believe

All of it belongs to the user of the image (10001) and is nobody else's to read. Needs a Docker Engine.

  --run-file FILE    the run file (default: deploy/runs/demo.toml)
  --clients N        rounds.clients of the run (default: the run file's)
  --relays N         relays between the clients and the coordinators; rounds.clients is then their number, and data.shards
                     that of the clients, unless data.partition is "all"
  --image NAME:TAG   (default: terse-fleet:local)
  --host NAME        name or address under which the coordinator is reached from outside; repeatable (always:
                     coordinator, localhost and 127.0.0.1)
USAGE
}

parse_arguments() {
  run_file=$deploy/runs/demo.toml clients='' relays='' image=terse-fleet:local folder=''
  hosts=(coordinator localhost 127.0.0.1)
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --run-file) run_file=$(value_of "$@"); shift 2 ;;
      --clients) clients=$(value_of "$@"); shift 2 ;;
      --relays) relays=$(value_of "$@"); shift 2 ;;
      --image) image=$(value_of "$@"); shift 2 ;;
      --host) hosts+=("$(value_of "$@")"); shift 2 ;;
      -*) unknown_argument "$1" ;;
      *)
        [[ -z "$folder" ]] || fail "one folder: '$folder' or '$1'?"
        folder=$(absolute "$1")
        shift
        ;;
    esac
  done
  [[ -n "$folder" ]] || fail "name the folder to make; see $TERSE_PROGRAM --help"
  check_inputs "$run_file" '' "$clients"
  [[ -n "$clients" ]] || clients=$(run_file_clients "$run_file" "$relays")
  check_relays "$relays" "$clients"
}

# Prints the script that issues all certificates in the container, whose root gives them to the image's user.
issue_all() {
  cat <<'SCRIPT'
set -eu
cd /fleet
pki="tersectl pki --pki authority"
$pki init
for host in "$@"; do hosts="${hosts:-} --host $host"; done
$pki issue coordinator main $hosts --out coordinator
$pki issue operator admin --out operator
$pki issue observer viewer --out observer
$pki issue observer prometheus --out prometheus
$pki invite --address authority:7701 --guests 1000 --hours 720 --out invitation
if [ "$FLEET_RELAYS" -gt 0 ]; then
  $pki issue coordinator second $hosts --host coordinator-2 --out coordinator-2
  for relay in $(seq "$FLEET_RELAYS"); do $pki issue relay "relay-$relay" --host "relay-$relay" --out "relay-$relay"; done
  # Servers of databases have certificates of the same form, of an authority that nobody of the fleet believes.
  databases="tersectl pki --pki database-authority"
  $databases init --name databases
  for server in database-1 database-2; do $databases issue coordinator $server --host $server --out $server; done
  mkdir -m 0700 passwords store
  for user in terse standby; do od -An -N 24 -t x1 /dev/urandom | tr -d ' \n' >passwords/$user.password; done
  echo "*:*:terse:terse:$(cat passwords/terse.password)" >store/pgpass
  cp database-authority/ca.crt store/
  chmod 0600 passwords/* store/*
fi
chown -R "$FLEET_USER:$FLEET_USER" .
chmod 0700 .
SCRIPT
}

# What relays.yml gives to relays and clients. A relay waits for its share of the clients, rounded down: the containers'
# addresses decide whose they are.
relays_env() {
  local relay addresses=()
  for relay in $(seq "$relays"); do addresses+=("relay-$relay:7700"); done
  printf 'RELAYS=%s\nRELAY_CLIENTS=%s\n' "${addresses[*]}" $((clients / relays))
}

# With relays, they and the second coordinator are read too. The label `store` tells the alerts which of them stand by for
# each other.
prometheus_settings() {
  if [[ -z "$relays" ]]; then
    cat "$here/prometheus.yml"
    return
  fi
  local relay targets=()
  for relay in $(seq "$relays"); do targets+=("\"relay-$relay:7780\""); done
  sed 's/"coordinator:7780"/&, "coordinator-2:7780"/' "$here/prometheus.yml"
  printf '        labels: {store: database}\n      - targets: [%s]\n' "$(IFS=,; echo "${targets[*]}")"
}

main() {
  parse_arguments "$@"
  docker image inspect "$image" >/dev/null 2>&1 || fail "no image '$image'; see the head of the Dockerfile, or --image"
  [[ ! -e "$folder" ]] || fail "'$folder' is there already; name a folder that is not"
  local name log
  name=$(run_file_value "$run_file" '' name)
  mkdir -p "$folder/prometheus"
  adjusted_run_file "$run_file" "$name" "$clients" "$relays" >"$folder/run.toml"
  prometheus_settings >"$folder/prometheus/prometheus.yml"
  cp "$deploy/monitoring/alerts.yml" "$folder/prometheus/"
  [[ -z "$relays" ]] || relays_env >"$folder/relays.env"
  log=$(mktemp -t terse-prepare.XXXXXX)
  if ! docker run --rm --user 0 --network none --env FLEET_USER=$user --env FLEET_RELAYS="${relays:-0}" \
    --volume "$folder:/fleet" --entrypoint sh "$image" -c "$(issue_all)" prepare "${hosts[@]}" >"$log" 2>&1 </dev/null; then
    fail "the certificates could not be made; remove '$folder' before you try again" "$log"
  fi
  rm -f "$log"
  say "the fleet's folder is $folder, for run '$name' with $clients clients${relays:+ and $relays relays}"
}

main "$@"
