#!/usr/bin/env bash
# The long campaign of tests/RELIABILITY.md: kills real processes, then simulates power losses, and adds what happened to
# the totals of earlier runs.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root bin=$root/build/faults/bin readme=$root/tests/RELIABILITY.md
readonly schedules_at_a_time=500

usage() {
  cat <<'USAGE'
usage: tests/campaign.sh [--relays] [--kills N] [--power-losses N] [--minutes N] [--in-total] [--parallel N] [--restart]
                         [--json] [--out FILE] [--no-build] [--help]

Builds the preset `faults`; kills coordinators and clients of real fleets, at every failpoint and at random times; then
runs simulated fleets with power losses; checks after each that no update was lost or doubled. What was done is added to
tests/reliability.json after every fleet, and the table in tests/RELIABILITY.md is written again. Exits with 1 on a
violation, whose seed and state directories are named. Ctrl-C ends it, and keeps what was done.

  --relays           fleets with relays between the coordinator and its clients, and no simulations; they have a table,
                     and totals in tests/reliability-relays.json, of their own
  --kills N          at least so many coordinators and so many clients (default: 500); with --relays, processes in all
  --power-losses N   at least so many in simulations (default: 1000)
  --in-total         N counts earlier runs: only what is missing is done
  --minutes N        end after so long, whatever was done
  --parallel N       fleets, and simulations, side by side (default: 6 fleets, and one simulation per processor)
  --restart          forget earlier runs, after a change that makes them worth nothing
  --json             print the totals as one line of JSON on standard output, and all else on standard error
  --out FILE         write that line to FILE too
  --no-build         run what is in build/faults
USAGE
}

fail() {
  printf 'tests/campaign.sh: %s\n' "$1" >&2
  exit 1
}

# number_of OPTION VALUE: a whole number.
number_of() {
  [[ $# -eq 2 && "$2" =~ ^[0-9]+$ ]] || fail "$1 needs a whole number; see tests/campaign.sh --help"
  printf '%s' "$2"
}

parse_arguments() {
  relays=0 kills=500 power_losses=1000 minutes=0 in_total=0 json=0 out='' restart=0 build=1 parallel=''
  totals=$root/tests/reliability.json
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --relays) relays=1; shift ;;
      --kills) kills=$(number_of "${@:1:2}"); shift 2 ;;
      --power-losses) power_losses=$(number_of "${@:1:2}"); shift 2 ;;
      --minutes) minutes=$(number_of "${@:1:2}"); shift 2 ;;
      --parallel) parallel=$(number_of "${@:1:2}"); shift 2 ;;
      --in-total) in_total=1; shift ;;
      --restart) restart=1; shift ;;
      --json) json=1; shift ;;
      --no-build) build=0; shift ;;
      --out)
        [[ $# -ge 2 && -n "$2" ]] || fail "--out needs a file; see tests/campaign.sh --help"
        out=$2
        shift 2
        ;;
      *) fail "unknown argument '$1'; see tests/campaign.sh --help" ;;
    esac
  done
  [[ $relays -eq 0 ]] || { totals=$root/tests/reliability-relays.json power_losses=0; }
}

sums() { python3 "$root/tests/faults/totals.py" "$totals" "$@"; }

# still_to_do WANTED KEY: how much of it this run has to do.
still_to_do() {
  local done=0
  [[ $in_total -eq 0 ]] || done=$(sums get "$2")
  echo $(($1 > done ? $1 - done : 0))
}

# seconds_left SHARE: of the time limit, in percent; 0 without a limit, and 1 when it is over.
seconds_left() {
  [[ $minutes -gt 0 ]] || { echo 0; return; }
  local left=$((minutes * 60 * $1 / 100 - SECONDS))
  echo $((left > 0 ? left : 1))
}

kill_processes() {
  local coordinators=0 clients=0 processes=0 share=100 options=()
  if [[ $relays -eq 1 ]]; then
    processes=$(still_to_do "$kills" kills)
    options=(--relays --kills "$processes")
  else
    coordinators=$(still_to_do "$kills" coordinator_kills)
    clients=$(still_to_do "$kills" client_kills)
    options=(--coordinator-kills "$coordinators" --client-kills "$clients")
  fi
  [[ $((coordinators + clients + processes)) -gt 0 && $violated$interrupted == 00 ]] || return 0
  [[ $power_losses -eq 0 ]] || share=80
  [[ -z "$parallel" ]] || options+=(--parallel "$parallel")
  echo "campaign: to kill: ${options[*]}" >&2
  "$bin/terse-campaign" "${options[@]}" --seed "$(sums get next_seed)" --seconds "$(seconds_left $share)" |
    sums add-fleets || violated=1
}

# Simulations in batches: after each, the totals are on disk.
lose_power() {
  local goal seed result left rc
  goal=$(($(sums get power_losses) + $(still_to_do "$power_losses" power_losses)))
  while [[ $(sums get power_losses) -lt $goal && $violated$interrupted == 00 ]]; do
    left=$(seconds_left 100)
    [[ $left -ne 1 ]] || return 0
    seed=$(sums get next_schedule)
    rc=0
    result=$("$bin/terse-schedules" --schedules "$schedules_at_a_time" --first-seed "$seed" \
      --threads "${parallel:-$(nproc)}" --json) || rc=$?
    if [[ $rc -eq 1 ]]; then
      violated=1
      printf '%s\n' "$result" >&2
    elif [[ $rc -ne 0 ]]; then
      [[ $interrupted -eq 1 ]] || fail "terse-schedules ended with code $rc"
      return 0
    fi
    printf '%s\n' "$result" | sums add-simulation "$seed"
    echo "campaign: $(sums get power_losses) of $goal power losses, $(sums get schedules) simulated schedules" >&2
  done
}

report() {
  local line
  # The table of relays is told from the other one by its relays.
  [[ $relays -eq 1 && $(sums get relay_kills) -eq 0 ]] || sums write-table "$readme"
  line=$(sums summary)
  [[ -z "$out" ]] || printf '%s\n' "$line" >"$out"
  if [[ $json -eq 1 ]]; then
    printf '%s\n' "$line"
  else
    python3 -m json.tool <<<"$line"
  fi
}

main() {
  parse_arguments "$@"
  [[ $build -eq 0 ]] || "$root/deploy/build.sh" --preset faults >&2
  [[ -x "$bin/terse-campaign" && ($relays -eq 1 || -x "$bin/terse-schedules") ]] ||
    fail "build/faults holds no campaign; run without --no-build"
  [[ $restart -eq 0 ]] || rm -f "$totals"
  violated=0 interrupted=0
  # The programs in the foreground end by themselves, with what they have done.
  trap 'interrupted=1' INT TERM
  kill_processes
  lose_power
  report
  [[ $violated -eq 0 ]] || fail "a violation, as described above; --restart begins new totals once it is repaired"
  [[ $interrupted -eq 0 ]] || exit 130
}

main "$@"
