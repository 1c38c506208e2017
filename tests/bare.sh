#!/usr/bin/env bash
# The README's commands on a bare Debian 12, where nothing but what the project's own scripts install can help: the demo and
# Python's quickstart run to their summaries, for the tests everything is configured.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/bare.sh
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/bare_machine.sh
source "$root/tests/bare_machine.sh"

usage() {
  cat <<'USAGE'
usage: tests/bare.sh [--cold] [--rounds N] [--mirror URL] [--cache DIR] [--help]

Makes a bare Debian 12 with debootstrap, clones this tree's HEAD into it, runs deploy/demo.sh there with a short run file
to its summary, then python/examples/run.sh, then installs and configures what tests/run.sh needs (tests/run.sh --configure).
Prints what each step took. pip has this machine's settings (PIP_*) and certificates. The machine is a folder in namespaces of its own and is gone afterwards. Needs root and a Debian mirror.

  --cold         share nothing with earlier runs: neither downloaded packages nor the compiler's cache
  --rounds N     rounds of the demo (default: 3)
  --mirror URL   Debian mirror (default: the one in /etc/apt)
  --cache DIR    the bare system and the downloaded packages, kept between runs (default: ~/.cache/terse-bare)
USAGE
}

parse_arguments() {
  cold=0 rounds=3 suite=bookworm mirror=$(mirror_of_apt) cache=$(default_cache)
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --cold) cold=1; shift ;;
      --rounds) rounds=$(value_of "$@"); shift 2 ;;
      --mirror) mirror=$(value_of "$@"); shift 2 ;;
      --cache) cache=$(absolute "$(value_of "$@")"); shift 2 ;;
      *) fail "unknown argument '$1'; see tests/bare.sh --help" ;;
    esac
  done
  [[ "$rounds" =~ ^[1-9][0-9]*$ ]] || fail "--rounds must be a positive number, not '$rounds'"
  check_bare
}

# The tree, and what earlier runs have left for this one.
bring_tree() {
  git -c advice.detachedHead=false clone --quiet "$root" "$system/root/terse"
  [[ $cold -eq 1 ]] || share_caches
}

# Mounts the downloads and compiled objects of earlier runs, which the machine that runs the tests keeps.
share_caches() {
  local compiled
  compiled=$(ccache --get-config cache_dir)
  mkdir -p "$cache/archives/partial" "$compiled" "$system/root/.cache/ccache"
  mount --bind "$cache/archives" "$system/var/cache/apt/archives"
  mount --bind "$compiled" "$system/root/.cache/ccache"
}

# on_tree COMMAND...: as root on the bare machine, in the tree.
on_tree() {
  on_machine /root/terse "$@"
}

# note NAME: the seconds since the step before was noted belong to NAME.
note() {
  took[$1]=$((SECONDS - noted))
  noted=$SECONDS
}

# Passes the demo's lines on, each with its second, and notes when each of its steps has ended.
watch_demo() {
  local line
  while IFS= read -r line; do
    printf '%4d s  %s\n' $((SECONDS - begin)) "$line"
    case "$line" in
      'packages: '*' more on the disk; '*) note size ;;
      'build: programs with '*) note packages ;;
      'build: programs done '*) note build ;;
      *" 1/$rounds "*) note round ;;
      'demo: results in '*) note summary ;;
      'demo.sh: exit '*) fail "deploy/demo.sh failed on a bare machine, as above (${line##* })" ;;
    esac
  done
}

run_demo() {
  run_file_set "$root/deploy/runs/demo.toml" rounds count "$rounds" >"$system/root/short.toml"
  begin=$SECONDS noted=$SECONDS
  watch_demo < <(on_tree deploy/demo.sh --run-file /root/short.toml 2>&1 || echo "demo.sh: exit $?")
  local name
  for name in size packages build round summary; do
    [[ -n "${took[$name]:-}" ]] || fail "deploy/demo.sh ended and never said the line that ends its step '$name'"
  done
  # What comes over the network is said once the lists of packages are there.
  took[packages]=$((took[size] + took[packages]))
  say "first round after $((took[packages] + took[build] + took[round])) s: packages ${took[packages]} s, build \
${took[build]} s, round ${took[round]} s; summary after ${took[summary]} s more"
}

run_quickstart() {
  local log=$work/quickstart.log
  begin=$SECONDS
  on_tree env "${pip_settings[@]}" python/examples/run.sh >"$log" 2>&1 ||
    fail "python/examples/run.sh failed on a bare machine, as above" "$log"
  grep -q 'right about 9[0-9]' "$log" || fail "Python's quickstart has learned nothing, as above" "$log"
  say "Python's quickstart $((SECONDS - begin)) s"
}

configure_tests() {
  local log=$work/configure.log
  begin=$SECONDS
  on_tree env "${pip_settings[@]}" tests/run.sh --configure >"$log" 2>&1 ||
    fail "the sets that tests/run.sh installs do not configure every preset on a bare machine, as above" "$log"
  say "tests: packages and configuration $((SECONDS - begin)) s"
}

main() {
  parse_arguments "$@"
  enter_namespaces "$root/tests/bare.sh" "$@"
  terse_install_packages machines
  # On a real disk: what is installed here would fill a memory file system.
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/work.XXXXXX")
  trap leave_machine EXIT
  declare -gA took=()
  begin=$SECONDS
  make_base
  make_machine
  bring_tree
  share_pip_settings  # as in a closed network
  say "a bare Debian 12 $((SECONDS - begin)) s"
  run_demo
  run_quickstart
  configure_tests
  say "passed"
}

main "$@"
