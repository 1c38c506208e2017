#!/usr/bin/env bash
# The documents' commands, run as they are written, on bare Debian 12 machines that are booted for them. Not part of
# tests/run.sh: it needs root, a Debian mirror and room for systems in containers (systemd-nspawn).
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/docs.sh
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"
# shellcheck source=tests/machines.sh
source "$root/tests/machines.sh"
# shellcheck source=tests/docs/steps.sh
source "$root/tests/docs/steps.sh"

# Those that say on which machines their commands run (tests/docs/blocks.py tells how).
readonly DOCUMENTS=(docs/tutorials/operator.md docs/tutorials/researcher.md docs/tutorials/developer.md docs/INSTALL.md
  docs/LOGS.md docs/SECURITY.md)
# The packages that developer.md has installed: everything that builds, and the fuzzers' compiler.
readonly DEVELOPER_PACKAGES=("${TERSE_BUILD_PACKAGES[@]}" "${TERSE_DEVELOP_PACKAGES[@]}" python3)
readonly READER_PACKAGES=(adduser curl openssl jq)

usage() {
  cat <<USAGE
usage: tests/docs.sh [--packages DIR] [--mirror URL] [--base DIR] [--help] [DOCUMENT...]

Makes Debian packages, boots the machines that each document names, with addresses of their own and no way out, puts
the packages into root's home there, and runs the document's commands in order. Prints a line for every block of
commands and what it took, and \`passed\` at the end. Needs root. The documents: ${DOCUMENTS[*]}

  --packages DIR  packages to use instead of making them (deploy/package.sh)
  --mirror URL    Debian mirror (default: http://deb.debian.org/debian)
  --base DIR      a system to use instead of making one: a bare Debian 12 with systemd, dbus, ${READER_PACKAGES[*]} and
                  what \`deploy/packages.sh runtime --print\` lists, for the developer's tutorial also what \`build\`
                  and \`develop\` do, and python3; it is not changed
USAGE
}

parse_arguments() {
  packages='' mirror=http://deb.debian.org/debian base='' documents=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --packages) packages=$(value_of "$@"); shift 2 ;;
      --mirror) mirror=$(value_of "$@"); shift 2 ;;
      --base) base=$(value_of "$@"); shift 2 ;;
      -*) fail "unknown argument '$1'; see tests/docs.sh --help" ;;
      *) documents+=("$1"); shift ;;
    esac
  done
  [[ ${#documents[@]} -gt 0 ]] || documents=("${DOCUMENTS[@]}")
  local document
  for document in "${documents[@]}"; do
    [[ -r "$root/$document" ]] || fail "no document '$document'; there are ${DOCUMENTS[*]}"
  done
  [[ -z "$packages" || -n "$(find "$packages" -name 'tersectl_*.deb' 2>/dev/null)" ]] ||
    fail "--packages: no tersectl_*.deb in '$packages'; deploy/package.sh makes it"
  [[ $EUID -eq 0 ]] || fail "systemd-nspawn needs root; run it as root or through sudo"
}

make_packages() {
  [[ -z "$packages" ]] || return 0
  packages=$work/packages
  "$root/deploy/package.sh" --out "$packages" >"$work/package.log"
}

# The machines have no way to a mirror, so what the packages need is there before.
make_base() {
  local given=$base
  machines_base "$mirror" "$base"
  [[ -z "$given" ]] || return 0
  printf 'deb %s bookworm main\n' "$mirror" >"$base/etc/apt/sources.list"
  chroot "$base" sh -c "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Dpkg::Use-Pty=0 install \
    --no-install-recommends ${TERSE_RUNTIME_PACKAGES[*]} ${DEVELOPER_PACKAGES[*]} ${READER_PACKAGES[*]}" >"$work/apt.log" 2>&1 ||
    fail "apt-get failed, as above; check --mirror" "$work/apt.log"
}

# place MACHINE:PATH: the path on this machine; ~ is root's home there.
place() {
  local path=${1#*:}
  printf '%s/root%s' "$work/${1%%:*}" "${path/#\~//root}"
}

run_document() {
  local machine begin=$SECONDS
  read_steps "$1"
  mapfile -t machines <"$steps/machines"
  machines_network "${machines[@]}"
  for machine in "${machines[@]}"; do
    machine_make "$machine"
    cp "$packages"/*.deb "$(place "$machine:~")"
    machine_boot "$machine"
  done
  step "the commands"
  run_steps
  step "shutdown"
  machines_shutdown
  say "$1: $((SECONDS - begin)) s"
}

finish() {
  machines_shutdown
  rm -rf --one-file-system "$work"
}

main() {
  parse_arguments "$@"
  terse_install_packages build packaging machines
  work=$(mktemp -d -t terse-docs.XXXXXX)
  trap finish EXIT
  trap 'exit 130' INT TERM
  step "packages"
  make_packages
  step "a bare Debian 12"
  make_base
  for document in "${documents[@]}"; do
    step "$document"
    run_document "$document"
  done
  say passed
}

main "$@"
