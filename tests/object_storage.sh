#!/usr/bin/env bash
# Backups and checkpoints in a bucket of a real server that speaks S3 and checks every signature.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/object_storage.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"
readonly GATEWAY_VERSION=v1.0.7

usage() {
  cat <<'USAGE'
usage: tests/object_storage.sh [--bin DIR] [--help]

Starts the S3 gateway versitygw on a folder, a coordinator and two clients, and stores backups and checkpoints there.
Needs versitygw; where that is missing, Go (1.21 or newer) builds it into a folder of its own.

  --bin DIR  the programs (default: build/release/bin)
USAGE
}

parse_arguments() {
  bin=$root/build/release/bin
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --bin) bin=$(value_of "$@"); shift 2 ;;
      *) fail "unknown argument '$1'; see $TERSE_PROGRAM --help" ;;
    esac
  done
  [[ -x "$bin/tersectl" ]] || fail "no programs in $bin; build them with deploy/build.sh --preset release"
}

find_gateway() {
  gateway=$(command -v versitygw) && return
  command -v go >/dev/null || fail "versitygw is missing, and Go to build it with; install one of them"
  GOBIN=$work go install "github.com/versity/versitygw/cmd/versitygw@$GATEWAY_VERSION" >"$work/go.log" 2>&1 ||
    fail "go cannot build versitygw" "$work/go.log"
  gateway=$work/versitygw
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start_gateway() {
  local port
  port=$(free_port)
  mkdir -p "$work/buckets/models"
  ROOT_ACCESS_KEY=terse ROOT_SECRET_KEY=terse-secret "$gateway" --port "127.0.0.1:$port" posix "$work/buckets" >"$work/gateway.log" 2>&1 &
  export AWS_ACCESS_KEY_ID=terse AWS_SECRET_ACCESS_KEY=terse-secret AWS_ENDPOINT_URL=http://127.0.0.1:$port
  soon "the gateway listens" bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
}

# The weights of a model of 12 MB, so that a backup of it goes up in parts.
write_model() {
  python3 - "$work/model.safetensors" <<'PYTHON'
import json, struct, sys
count = 3_000_000
header = json.dumps({"w": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}).encode()
header += b" " * (-len(header) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + b"".join(struct.pack("<f", i / count) for i in range(count)))
PYTHON
  cat >"$work/large.toml" <<'TOML'
name = "large"
model.name = "external"
data.name = "external"
[train]
local_steps = 1
optimizer.learning_rate = 0.1
[codec]
name = "sbc"
[rounds]
count = 1
TOML
}

start_coordinator() {
  sed 's/^count = .*/count = 6/; s/^clients = .*/clients = 2/' "$root/deploy/runs/demo.toml" >"$work/run.toml"
  "$bin/terse-coordinator" --state "$work/state" --listen 127.0.0.1:0 --ready-file "$work/ready.json" >"$work/coordinator.log" 2>&1 &
  soon "the coordinator serves" test -s "$work/ready.json"
  export TERSE_ADMIN=unix:$work/state/admin.sock
  address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["listen"])' "$work/ready.json")
}

check_backups() {
  write_model
  check "a run with a model of 12 MB can be made" \
    "$bin/tersectl" run create --run-file "$work/large.toml" --model "$work/model.safetensors" --paused
  check "it is backed up to the bucket" "$bin/tersectl" backup --run large --out s3://models/backups/monday
  check "with its list" test -s "$work/buckets/models/backups/monday/backup.json"
  check "its checkpoint went up in more than one part" grep -q 'partNumber=2' "$work/gateway.log"
  check "and whole" cmp "$work/buckets/models/backups/monday/checkpoints/0000000000.ckpt" "$work/state/runs/large/checkpoints/0000000000.ckpt"
  check "a second one of that name is refused" refused exists "$bin/tersectl" backup --run large --out s3://models/backups/monday
  check "it is restored" "$bin/tersectl" restore s3://models/backups/monday --state "$work/restored"
  check "with the same model" cmp "$work/restored/runs/large/checkpoints/0000000000.ckpt" "$work/state/runs/large/checkpoints/0000000000.ckpt"
  AWS_SECRET_ACCESS_KEY=wrong check "a wrong key is refused" refused SignatureDoesNotMatch \
    "$bin/tersectl" backup --run large --out s3://models/backups/tuesday
  check "a bucket that is not there is told" refused NoSuchBucket "$bin/tersectl" backup --run large --out s3://nothing/monday
}

# refused TEXT COMMAND...: whether it fails with that text.
refused() {
  local text=$1
  shift
  ! "$@" >"$work/refused.log" 2>&1 && grep -q "$text" "$work/refused.log"
}

check_checkpoints() {
  check "a run of six rounds can be made" "$bin/tersectl" run create --run-file "$work/run.toml"
  local name folder client
  name=$(run_file_value "$work/run.toml" '' name)
  for client in one two; do
    "$bin/terse-client" --coordinator "$address" --name $client --state "$work/$client" --run "$name" --threads 1 >"$work/$client.log" 2>&1 &
  done
  check "the run is followed to its end" "$bin/tersectl" follow --run "$name" --checkpoints s3://models/checkpoints \
    --checkpoint-every 1 --checkpoint-keep 2
  folder=$(echo "$work/buckets/models/checkpoints/$name"-*)
  check "two checkpoints are left" test "$(find "$folder" -name '*.safetensors' | wc -l)" = 2
  check "the model can be exported" "$bin/tersectl" export --run "$name" --out "$work/export"
  check "the newest checkpoint is that model" cmp "$folder/0000000006.safetensors" "$work/export/model.safetensors"
}

main() {
  parse_arguments "$@"
  work=$(mktemp -d -t terse-object-storage.XXXXXX)
  # shellcheck disable=SC2046  # words
  trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
  find_gateway
  start_gateway
  start_coordinator
  check_backups
  check_checkpoints
  say passed
}

main "$@"
