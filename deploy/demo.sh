#!/usr/bin/env bash
# Terse in one command: packages, build, a coordinator and its clients on this machine, a line per round, the summary.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
readonly here root
readonly TERSE_PROGRAM=deploy/demo.sh
# shellcheck source=deploy/lib.sh
source "$here/lib.sh"
# shellcheck source=deploy/processes.sh
source "$here/processes.sh"

usage() {
  cat <<'USAGE'
usage: deploy/demo.sh [--run-file FILE] [--data DIR] [--model FILE] [--clients N] [--name NAME] [--out DIR]
                      [--device auto|cpu|cuda] [--listen ADDR] [--admin ADDR] [--http ADDR] [--bin DIR] [--help]

Trains a model with a coordinator and N client processes on this machine, each with one thread, over gRPC on the
loopback interface. Installs the Debian packages that are missing and builds Terse first. Ends with a summary table and
with what to do next, and leaves
  runs/NAME/  run.toml  coordinator/ (the database and the checkpoints)  clients/  logs/
              model.pt  model.safetensors  model.npz  rounds.csv  accuracy_vs_bytes.svg  summary.json  config.json

  --run-file FILE the run (default: deploy/runs/demo.toml)
  --data DIR      folder of the data set (default: the digits that are built in, no download)
  --model FILE    train this TorchScript module (torch.jit.save) in place of the run file's model; docs/EXTEND.md says
                  what it must have. It is code, which the clients are told to trust, and which the coordinator runs in
                  a sandbox; it then takes such modules from whoever reaches its --admin address
  --clients N     number of clients (default: rounds.clients of the run file, 4 when it says nothing)
  --name NAME     name of the run and of its folder (default: the run file's)
  --out DIR       where run folders go (default: runs)
  --device D      where clients train (default: auto)
  --listen ADDR   the coordinator's address for clients (default: 127.0.0.1:0, a free port)
  --admin ADDR    the coordinator's address for tersectl (default: 127.0.0.1:0, a free port)
  --http ADDR     the dashboard's address (default: 127.0.0.1:0, a free port)
  --bin DIR       run the executables in DIR; installs and builds nothing

An unfinished run of the same name, file, data and model is resumed; anything else of that name is kept, and the new run
becomes NAME-2. Stop with Ctrl-C; the same command goes on from there.
USAGE
}

parse_arguments() {
  run_file=$root/deploy/runs/demo.toml data='' model='' clients='' name='' out=$root/runs device=auto
  listen=127.0.0.1:0 admin=127.0.0.1:0 http=127.0.0.1:0 bin=''
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --run-file) run_file=$(value_of "$@"); shift 2 ;;
      --data) data=$(value_of "$@"); shift 2 ;;
      --model) model=$(value_of "$@"); shift 2 ;;
      --clients) clients=$(value_of "$@"); shift 2 ;;
      --name) name=$(value_of "$@"); shift 2 ;;
      --out) out=$(value_of "$@"); shift 2 ;;
      --device) device=$(value_of "$@"); shift 2 ;;
      --listen) listen=$(value_of "$@"); shift 2 ;;
      --admin) admin=$(value_of "$@"); shift 2 ;;
      --http) http=$(value_of "$@"); shift 2 ;;
      --bin) bin=$(value_of "$@"); shift 2 ;;
      *) unknown_argument "$1" ;;
    esac
  done
  check_inputs "$run_file" "$data" "$clients"
  check_model
  [[ "$device" =~ ^(auto|cpu|cuda)$ ]] || fail "--device must be auto, cpu or cuda, not '$device'"
  [[ -z "$data" ]] || data=$(absolute "$data")
  [[ -z "$model" ]] || model=$(absolute "$model")
  [[ -z "$bin" ]] || bin=$(absolute "$bin")
  out=$(absolute "$out")
  [[ -n "$clients" ]] || clients=$(run_file_value "$run_file" rounds clients)
  [[ -n "$name" ]] || name=$(run_file_value "$run_file" '' name)
  clients=${clients:-4}
}

# The run file's model is one of Terse's own, or --model names the file.
check_model() {
  if [[ -n "$model" ]]; then
    [[ -f "$model" && -r "$model" ]] ||
      fail "--model: no file '$model'; torch.jit.script(module).save(FILE) writes one in Python"
    return 0
  fi
  case "$(run_file_value "$run_file" model name)" in
    torchscript) fail "'$run_file' trains a module of your own; name its file with --model" ;;
    external | plugin)
      fail "'$run_file' is for programs of your own, which the demo does not start; docs/PYTHON.md and docs/EXTEND.md do" ;;
  esac
}

interrupted() {
  trap - INT TERM
  echo >&2
  printf '%s: stopped; the same command resumes the run in %s\n' "$TERSE_PROGRAM" "${run_folder:-its folder}" >&2
  exit "$1"
}

# The coordinator takes a module with the run that it is for. A run that is resumed has it.
serve_run() {
  if [[ -z "$model" ]]; then
    start_coordinator --run-file "$run_folder/run.toml" ${data:+--data "$data"}
    return 0
  fi
  # On a port of this machine nobody is known by name.
  start_coordinator --allow-models any ${data:+--data "$data"}
  ctl status >/dev/null 2>&1 || create_run "$run_folder/run.toml" "$model"
  model_hash=$(run_file_value "$run_folder/run.toml" model hash)
}

finish() {
  wait_for_clients
  export_run "$run_folder"
  echo
  ctl summary || fail "tersectl could not summarise the run"
  stop_coordinator
}

# quoted WORD...: the words as a shell reads them again.
quoted() {
  local words
  words=$(printf ' %q' "$@")
  printf '%s' "${words# }"
}

# Commands that work as they stand, for the run that has ended.
what_next() {
  cat <<NEXT

What next
  The dashboard again, at http://127.0.0.1:7780/ until Ctrl-C:
    $(quoted "$coordinator_program" --state "$run_folder/coordinator" ${data:+--data "$data"}) \\
      --listen 127.0.0.1:0 --admin 127.0.0.1:7701 --http 127.0.0.1:7780
  Meanwhile, in another terminal, every round, and the model and the curves in all formats:
    $(quoted "$bin/tersectl") --admin 127.0.0.1:7701 rounds
    $(quoted "$bin/tersectl") --admin 127.0.0.1:7701 export --format all --out $(quoted "$run_folder/export")
  A run of your own, from a copy of this run's file that you may edit ("tersectl config" lists every key):
    $(quoted cp "$run_folder/run.toml" my-run.toml) &&
      $(quoted "$root/deploy/demo.sh" --run-file my-run.toml --name my-run --out "$out" --bin "$bin" ${data:+--data "$data"} ${model:+--model "$model"})
  Data and a model of your own: docs/tutorials/first-run.md; a training loop of your own: docs/PYTHON.md. An example, which needs a Python
  with torch and numpy:
    $(quoted "$root/deploy/examples/python/run.sh" --bin "$bin")
NEXT
}

main() {
  parse_arguments "$@"
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM
  trap stop_children EXIT
  choose_executables "$bin"
  local file=$run_file
  if [[ -n "$model" ]]; then
    file=$(mktemp -t terse-run.XXXXXX)
    run_file_with_model "$run_file" "$model" >"$file"
  fi
  open_run_folder "$out" "$name" "$file" "$clients" "$data"
  [[ -z "$model" ]] || rm -f "$file"
  mkdir -p "$run_folder/logs" "$run_folder/clients"
  # One thread a process: four clients on two cores gain nothing from more.
  export OMP_NUM_THREADS=1
  serve_run
  start_clients "$clients" ${data:+--data "$data"} ${model:+--allow-model "$model_hash"} --device "$device"
  say "$clients clients train '$run_name' ${model:+($(basename "$model")) }with ${data:-the built-in digits}; dashboard: $dashboard"
  follow
  finish
  say "results in $run_folder"
  what_next
}

main "$@"
