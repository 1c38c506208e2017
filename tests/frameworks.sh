#!/usr/bin/env bash
# The package for Python with the frameworks that it works inside of, and `tersectl follow` with the tools that it hands runs
# to, from PyPI and, the OpenTelemetry collector, from Go's modules, each in a virtual environment of its own.
# Not part of tests/run.sh: it needs PyPI and a proxy for Go's modules.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/frameworks.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"

# What each is installed from, beside Debian's torch 1.13, which was built for NumPy 1 and works with these releases. The
# test of each is tests/python/NAME_test.py.
declare -rA PACKAGES=(
  [flower]='flwr>=1.42,<2 numpy<2'
  [ray]='ray>=2.40,<3 numpy<2'
  [lightning]='lightning>=2.1,<2.2 pytorch-lightning<2.2 torchmetrics<1.4 numpy<2'
  [huggingface]='transformers>=4.36,<4.40 accelerate<0.30 numpy<2'
  [mlflow]='mlflow>=3,<4'
  [wandb]='wandb>=0.21,<0.22'
  [tensorboard]='tensorboard>=2.15,<3 numpy<2'
  [otlp]='opentelemetry-proto>=1.27,<2'
  [collector]=''
)

# The collector's version, and that of those of its modules whose interface is stable, which have a number of their own.
# It wants Go 1.24.
readonly COLLECTOR_VERSION=v0.140.0 COLLECTOR_STABLE_VERSION=v1.46.0

usage() {
  cat <<'USAGE'
usage: tests/frameworks.sh [--build DIR] [--environments DIR] [--install] [--help] [NAME...]

Tests terse.flower, terse.simulate on Ray, terse.lightning and terse.huggingface with Flower, Ray, Lightning and
transformers, and tersectl follow with MLflow's server, wandb's and TensorBoard's readers, OpenTelemetry's messages and its
collector, of which NAME names some: flower, ray, lightning, huggingface, mlflow, wandb, tensorboard, otlp, collector; by
default all. A virtual environment is made for each, unless it is there; that of the collector needs Go (1.24 or newer),
which builds it. The tests start fleets of processes and kill some of them; each takes up to three minutes.

  --build DIR         the build whose programs and package to test (default: build/release)
  --environments DIR  the folder of the virtual environments (default: build/frameworks)
  --install           make the environments, and test nothing
USAGE
}

parse_arguments() {
  build=$root/build/release environments=$root/build/frameworks install=0 names=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --build) build=$(absolute "$(value_of "$@")"); shift 2 ;;
      --environments) environments=$(absolute "$(value_of "$@")"); shift 2 ;;
      --install) install=1; shift ;;
      -*) unknown_argument "$1" ;;
      *)
        [[ -v "PACKAGES[$1]" ]] || unknown_argument "$1"
        names+=("$1")
        shift
        ;;
    esac
  done
  [[ ${#names[@]} -gt 0 ]] || names=(flower ray lightning huggingface mlflow wandb tensorboard otlp collector)
  [[ $install -eq 1 ]] || check_build
}

check_build() {
  [[ -d "$build/python/terse" ]] || fail "there is no package in '$build/python'; build the target terse_python_codecs"
  [[ -x "$build/bin/terse-coordinator" ]] || fail "there is no terse-coordinator in '$build/bin'; build it"
}

# make_environment NAME: the file `installed` in it says of what it is made.
make_environment() {
  local venv=$environments/$1 wanted=${PACKAGES[$1]}
  [[ "$1" != collector ]] || wanted="opentelemetry-collector $COLLECTOR_VERSION"
  [[ "$(cat "$venv/installed" 2>/dev/null)" != "$wanted" ]] || return 0
  say "installing $wanted into $venv"
  /usr/bin/python3 -m venv --clear --system-site-packages "$venv"
  if [[ "$1" == collector ]]; then
    build_collector "$venv"
  else
    # shellcheck disable=SC2086  # several words
    "$venv/bin/pip" install --quiet $wanted
  fi
  echo "$wanted" >"$venv/installed"
}

# build_collector VENV: VENV/bin/otelcol.
build_collector() {
  command -v go >/dev/null || fail "Go is missing, which builds the OpenTelemetry collector; install Go 1.24 or newer"
  run_builder "$1" >"$1/build.log" 2>&1 || fail "Go cannot build the OpenTelemetry collector" "$1/build.log"
}

# run_builder VENV: with the collector's own builder, which would also fetch what only the modules' tests need.
run_builder() {
  cat >"$1/builder.yaml" <<YAML
dist: {name: otelcol, output_path: $1/source, version: ${COLLECTOR_VERSION#v}}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $COLLECTOR_VERSION}]
exporters: [{gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter $COLLECTOR_VERSION}]
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider $COLLECTOR_STABLE_VERSION
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider $COLLECTOR_STABLE_VERSION
YAML
  GOBIN=$1/bin go install "go.opentelemetry.io/collector/cmd/builder@$COLLECTOR_VERSION" &&
    "$1/bin/builder" --config "$1/builder.yaml" --skip-compilation --skip-get-modules &&
    (cd "$1/source" && go build -mod=mod -trimpath -ldflags='-s -w' -o "$1/bin/otelcol" .)
}

test_framework() {
  say "testing $1"
  PYTHONPATH=$build/python:$root/tests/python TERSE_BIN=$build/bin OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 \
    "$environments/$1/bin/python" "$root/tests/python/$1_test.py" "$build/bin" || fail "$1_test.py failed, as above"
}

main() {
  parse_arguments "$@"
  local name
  for name in "${names[@]}"; do
    make_environment "$name"
    [[ $install -eq 1 ]] || test_framework "$name"
  done
  say "done: ${names[*]}"
}

main "$@"
