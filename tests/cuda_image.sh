#!/usr/bin/env bash
# The image with CUDA: what it is made of, what it says on a machine without a card, and a run of two clients in it; with
# a card and NVIDIA's container toolkit they train on the card.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/cuda_image.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"
readonly image=terse-cuda:local rounds=5

usage() {
  cat <<'USAGE'
usage: tests/cuda_image.sh [--no-build] [--build-arg NAME=VALUE]... [--help]

Builds deploy/cuda.Dockerfile, some gigabytes from PyPI, and runs a coordinator and two clients in it. Needs a Docker
Engine and 20 GB of disk.

  --no-build             take terse-cuda:local as it is
  --build-arg NAME=VALUE for docker build (PIP_INDEX_URL and PIP_TRUSTED_HOST where PyPI is behind a proxy)
USAGE
}

parse_arguments() {
  build=1 arguments=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --no-build) build=0; shift ;;
      --build-arg) arguments+=(--build-arg "$(value_of "$@")"); shift 2 ;;
      *) fail "unknown argument '$1'; see $TERSE_PROGRAM --help" ;;
    esac
  done
  docker info >/dev/null 2>&1 || fail "no Docker Engine answers; start it (service docker start) and try again"
}

build_image() {
  "$root/deploy/base_image.sh"
  docker build -t terse-build:local --target build "$root" >"$work/build.log" 2>&1 </dev/null ||
    fail "the build stage of the Dockerfile failed" "$work/build.log"
  docker build -t $image -f "$root/deploy/cuda.Dockerfile" "${arguments[@]}" "$root/deploy" >"$work/build.log" 2>&1 </dev/null ||
    fail "deploy/cuda.Dockerfile did not build" "$work/build.log"
  say "image $image, $(docker image inspect --format '{{.Size}}' $image | awk '{printf "%.1f GB", $1 / 1e9}')"
}

# terse COMMAND...: in a container of the image, as its user, with the cards if there are any.
terse() {
  docker run --rm "${cards[@]}" $image "$@"
}

# run_on DEVICE: a coordinator and its two clients, as processes of one container. Ends with a client that fails.
run_on() {
  terse timeout $PATIENCE bash -c "
    sed 's/^count = .*/count = $rounds/; s/^clients = .*/clients = 2/' /etc/terse/runs/demo.toml >run.toml
    terse-coordinator --run-file run.toml --state /state/coordinator --listen 127.0.0.1:7700 &
    coordinator=\$!
    for name in one two; do
      terse-client --coordinator 127.0.0.1:7700 --name \$name --state /state/\$name --device $1 &
    done
    wait -n && wait -n || exit
    tersectl --admin unix:/state/coordinator/admin.sock status --json
    kill \$coordinator" >"$work/run.log" 2>&1 </dev/null
}

refuses_cuda() {
  ! run_on cuda || return 1
  cat "$work/run.log"
  grep -q "sees no CUDA device" "$work/run.log"
}

trains() {
  run_on $device || { cat "$work/run.log"; return 1; }
  cat "$work/run.log"
  grep -q "\"version\": *$rounds" "$work/run.log"
}

main() {
  parse_arguments "$@"
  work=$(mktemp -d -t terse-cuda.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  cards=() device=cpu
  if [[ -e /dev/nvidiactl ]]; then cards=(--gpus all) device=cuda; fi
  [[ $build -eq 0 ]] || { step "image"; build_image; }
  step "checks on $device"
  check "no library is missing" bash -c "! docker run --rm $image ldd /usr/local/bin/terse-client-torch | grep 'not found'"
  [[ "$device" == cuda ]] || check "--device cuda without a card is refused with a reason" refuses_cuda
  check "two clients train $rounds rounds" trains
  step ''
  say "passed"
}

main "$@"
