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
usage: deploy/compose/prepare.sh [--run-file FILE] [--clients N] [--image NAME:TAG] [--host NAME]... [--help] DIR

Makes DIR for deploy/compose/fleet.yml, with tersectl in the image:

  DIR/run.toml      the run
  DIR/authority     the authority: whoever has it can let anybody into the fleet
  DIR/coordinator   the coordinator's TLS folder
  DIR/operator      an operator's, for tersectl from another machine, and DIR/observer an observer's, for a browser
  DIR/invitation    with which 1,000 clients may enrol within 30 days
  DIR/prometheus    settings, alerts and a certificate for Prometheus

All of it belongs to the user of the image (10001) and is nobody else's to read. Needs a Docker Engine.

  --run-file FILE    the run file (default: deploy/runs/demo.toml)
  --clients N        rounds.clients of the run (default: the run file's)
  --image NAME:TAG   (default: terse-fleet:local)
  --host NAME        name or address under which the coordinator is reached from outside; repeatable (always:
                     coordinator, localhost and 127.0.0.1)
USAGE
}

parse_arguments() {
  run_file=$deploy/runs/demo.toml clients='' image=terse-fleet:local folder='' hosts=(coordinator localhost 127.0.0.1)
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --run-file) run_file=$(value_of "$@"); shift 2 ;;
      --clients) clients=$(value_of "$@"); shift 2 ;;
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
  [[ -n "$clients" ]] || clients=$(run_file_value "$run_file" rounds clients)
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
chown -R "$FLEET_USER:$FLEET_USER" .
chmod 0700 .
SCRIPT
}

main() {
  parse_arguments "$@"
  docker image inspect "$image" >/dev/null 2>&1 || fail "no image '$image'; see the head of the Dockerfile, or --image"
  [[ ! -e "$folder" ]] || fail "'$folder' is there already; name a folder that is not"
  local name log
  name=$(run_file_value "$run_file" '' name)
  mkdir -p "$folder/prometheus"
  adjusted_run_file "$run_file" "$name" "${clients:-4}" >"$folder/run.toml"
  cp "$here/prometheus.yml" "$deploy/monitoring/alerts.yml" "$folder/prometheus/"
  log=$(mktemp -t terse-prepare.XXXXXX)
  if ! docker run --rm --user 0 --network none --env FLEET_USER=$user --volume "$folder:/fleet" --entrypoint sh "$image" \
    -c "$(issue_all)" prepare "${hosts[@]}" >"$log" 2>&1 </dev/null; then
    fail "the certificates could not be made; remove '$folder' before you try again" "$log"
  fi
  rm -f "$log"
  say "the fleet's folder is $folder, for run '$name' with ${clients:-4} clients"
}

main "$@"
