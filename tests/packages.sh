#!/usr/bin/env bash
# The Debian packages on a bare Debian 12 that was booted for them: installed, run as services, upgraded in the middle
# of a run, killed, purged and installed again. Not part of tests/run.sh: it needs root, a Debian mirror and room for
# a system in a container (systemd-nspawn).
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/packages.sh
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"
# shellcheck source=tests/machines.sh
source "$root/tests/machines.sh"

readonly ROUNDS=200
# The most that `systemd-analyze security` may find: 0 is sealed off, 10 is open.
readonly EXPOSURE=2.5

usage() {
  cat <<'USAGE'
usage: tests/packages.sh [--mirror URL] [--base DIR] [--help]

Makes the packages twice (revisions 1 and 2), boots a bare Debian 12 with systemd-nspawn and checks there that they
install, serve, survive an upgrade and a kill in the middle of a run, leave what was trained when they are purged, and
find it again. Prints a line for every check, the time each step took, and `passed` at the end. Needs root.

  --mirror URL   Debian mirror (default: http://deb.debian.org/debian)
  --base DIR     a system to use instead of making one: what debootstrap left there; it is not changed
USAGE
}

parse_arguments() {
  mirror=http://deb.debian.org/debian base=''
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --mirror) mirror=$(value_of "$@"); shift 2 ;;
      --base) base=$(value_of "$@"); shift 2 ;;
      *) fail "unknown argument '$1'; see tests/packages.sh --help" ;;
    esac
  done
  [[ $EUID -eq 0 ]] || fail "systemd-nspawn needs root; run it as root or through sudo"
}

make_packages() {
  local revision
  for revision in 1 2; do
    "$root/deploy/package.sh" --revision "$revision" --out "$work/packages/$revision" >"$work/package.log"
  done
}

finish() {
  local rc=$?
  local journal=$work/machine/upper/var/log/journal
  machines_shutdown
  if [[ $rc -ne 0 && -d "$journal" ]]; then
    journalctl --directory "$journal" -u 'terse-*' -n 30 --no-pager >&2 || true
  fi
  rm -rf --one-file-system "$work"
}

install_revision() {
  within machine sh -c "apt-get -qq -o Dpkg::Use-Pty=0 install --no-install-recommends \
    /packages/$1/terse-coordinator_*.deb /packages/$1/terse-client_*.deb /packages/$1/terse-client-torch_*.deb /packages/$1/terse-simulate_*.deb \
    /packages/$1/terse-relay_*.deb \
    /packages/$1/tersectl_*.deb /packages/$1/terse-authority_*.deb /packages/$1/terse-follow_*.deb"
}

rounds() {
  within machine tersectl --json status | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])'
}

at_least() {
  [[ "$(rounds)" -ge "$1" ]]
}

pid_of() {
  within machine systemctl show --property MainPID --value "$1"
}

exposure_is_low() {
  within machine systemd-analyze security --no-pager "$1" |
    awk -v most=$EXPOSURE '/Overall exposure level/ {
      for (i = 1; i <= NF; ++i) if ($i ~ /^[0-9.]+$/) { found = 1; print $i; exit !($i <= most) } }
      END { if (!found) exit 1 }'
}

check_installation() {
  step "installation"
  check "the packages install with what they need" install_revision 1
  check "nothing was started" within machine sh -c '! systemctl is-active --quiet terse-coordinator terse-client terse-relay terse-authority terse-follow'
  check "nothing was enabled" \
    within machine sh -c '! systemctl is-enabled --quiet terse-coordinator terse-client terse-relay terse-authority terse-follow'
  check "the units have no mistake" within machine systemd-analyze verify --man=no --recursive-errors=no \
    /usr/lib/systemd/system/terse-coordinator.service /usr/lib/systemd/system/terse-client.service \
    /usr/lib/systemd/system/terse-relay.service /usr/lib/systemd/system/terse-authority.service \
    /usr/lib/systemd/system/terse-follow.service
  # shellcheck disable=SC2016  # the machine's shell expands it
  check "the certificates' folder is the service's alone" \
    within machine sh -c '[ "$(stat -c "%U %a" /etc/terse/tls)" = "terse 700" ]'
  # shellcheck disable=SC2016  # the machine's shell expands it
  check "and the authority's folder its own" \
    within machine sh -c '[ "$(stat -c "%U %a" /var/lib/terse-authority)" = "terse-authority 700" ]'
  check "tersectl has its manual" within machine test -s /usr/share/man/man1/tersectl.1
  check "and its completion" within machine test -s /usr/share/bash-completion/completions/tersectl
  check "a small fleet is simulated" within machine terse-simulate /usr/share/terse/runs/demo.toml --rounds 2 --state /var/tmp/fleet
  check "LibTorch computes with OpenBLAS" \
    within machine sh -c 'readlink -f /usr/lib/*/libblas.so.3 | grep -q openblas'
  local unit
  for unit in terse-coordinator terse-client terse-relay terse-authority terse-follow; do
    check "$unit is sealed off (exposure at most $EXPOSURE of 10)" exposure_is_low "$unit"
  done
}

# options_of SERVICE OPTIONS: into its file.
options_of() {
  local name=${1#terse-}
  within machine sed -i "s|^TERSE_${name^^}_OPTIONS=.*|TERSE_${name^^}_OPTIONS=$2|" "/etc/terse/$name.env"
}

check_enrolment() {
  step "a client comes by invitation"
  local before=/etc/terse/client.env.before
  check "an authority is made" within machine tersectl pki --pki /var/lib/terse-authority init
  options_of terse-authority '--host 127.0.0.1'
  check "its service starts" within machine systemctl start --quiet terse-authority
  check "root invites beside it" within machine tersectl pki --pki /var/lib/terse-authority invite \
    --address 127.0.0.1:7701 --out /root/fleet.invitation
  within machine install -o terse -m 0600 /root/fleet.invitation /etc/terse/fleet.invitation
  within machine cp -p /etc/terse/client.env "$before"
  options_of terse-client '--coordinator 127.0.0.1:7700 --tls /var/lib/terse-client/tls --enrol /etc/terse/fleet.invitation'
  check "the client starts" within machine systemctl start --quiet terse-client
  soon "and has its certificate" within machine test -s /var/lib/terse-client/tls/node.crt
  # shellcheck disable=SC2016  # the machine's shell expands it
  check "in a folder of its own" \
    within machine sh -c '[ "$(stat -c "%U %a" /var/lib/terse-client/tls)" = "terse 700" ]'
  check "the authority runs as its own user" \
    within machine sh -c "[ \$(stat -c %U /proc/$(pid_of terse-authority)) = terse-authority ]"
  check "which the others cannot read" \
    within machine sh -c '! setpriv --reuid terse --regid terse --clear-groups ls /var/lib/terse-authority'
  check "both stop" within machine systemctl stop --quiet terse-client terse-authority
  within machine mv "$before" /etc/terse/client.env
  within machine rm /etc/terse/fleet.invitation
}

check_run() {
  step "a run as services"
  check "the coordinator starts" within machine systemctl enable --now --quiet terse-coordinator
  soon "tersectl reaches it where it looks by itself" within machine tersectl runs
  within machine sed 's/^count = .*/count = '$ROUNDS'/; s/^clients = .*/clients = 1/' /usr/share/terse/runs/demo.toml \
    >"$work/machine/root/var/tmp/run.toml"
  check "a run is made" within machine tersectl run create --run-file /var/tmp/run.toml
  check "the client starts" within machine systemctl enable --now --quiet terse-client
  soon "rounds commit" at_least 5
  check "the dashboard answers" \
    within machine sh -c "printf 'GET /api/v1/runs HTTP/1.0\r\nHost: 127.0.0.1:7780\r\n\r\n' |
    bash -c 'exec 3<>/dev/tcp/127.0.0.1/7780; cat >&3; cat <&3' | grep -q demo"
  local service
  for service in terse-coordinator terse-client; do
    check "$service runs as the user terse" \
      within machine sh -c "[ \$(stat -c %U /proc/$(pid_of $service)) = terse ]"
  done
}

check_upgrade() {
  step "an upgrade in the middle of the run"
  local coordinator client before
  coordinator=$(pid_of terse-coordinator) client=$(pid_of terse-client) before=$(rounds)
  within machine sed -i "\$a # an edit" /etc/terse/client.env
  check "the packages are upgraded" install_revision 2
  check "the coordinator is the new one" test "$(pid_of terse-coordinator)" -ne "$coordinator"
  check "the client is the new one" test "$(pid_of terse-client)" -ne "$client"
  check "the configuration is as it was edited" within machine grep -q 'an edit' /etc/terse/client.env
  soon "the run goes on" at_least $((before + 5))
}

check_kill() {
  step "killed processes"
  local service before
  for service in terse-coordinator terse-client; do
    before=$(rounds)
    within machine systemctl kill --signal=KILL --kill-whom=main $service
    soon "after a kill of $service the run goes on" at_least $((before + 5))
  done
}

check_end() {
  step "the run's end"
  check "no library complains of the walls around it" \
    within machine sh -c '! journalctl --quiet -u terse-coordinator -u terse-client | grep -i warning:'
  soon "all $ROUNDS rounds are committed" at_least $ROUNDS
  soon "the client has ended in order" within machine sh -c '! systemctl is-active --quiet terse-client'
  check "as a success" within machine sh -c '! systemctl is-failed --quiet terse-client'
  check "no residual was lost" within machine sh -c 'tersectl --json clients | grep -q "\"resets\": *0"'
  within machine tersectl summary
}

check_purge() {
  step "purge, and installed again"
  check "the packages are purged" \
    within machine apt-get -qq -o Dpkg::Use-Pty=0 purge terse-coordinator terse-client terse-relay terse-simulate terse-authority terse-follow tersectl
  check "the services are gone" within machine sh -c '! systemctl cat terse-coordinator terse-client terse-relay terse-authority terse-follow'
  check "no process is left" within machine sh -c '! find /proc -maxdepth 1 -user terse | grep .'
  check "the configuration is gone" within machine test ! -e /etc/terse
  check "what was trained is still there" within machine test -s /var/lib/terse/runs/demo/run.sqlite
  check "and the residual" within machine test -d /var/lib/terse-client
  check "and the authority's key" within machine test -s /var/lib/terse-authority/ca.key
  check "the packages install again" install_revision 2
  check "the coordinator starts again" within machine systemctl start terse-coordinator
  soon "with the run that it had" within machine sh -c 'tersectl runs | grep -q "demo.*finished"'
}

main() {
  parse_arguments "$@"
  terse_install_packages build packaging machines
  work=$(mktemp -d -t terse-packages.XXXXXX)
  trap finish EXIT
  trap 'exit 130' INT TERM
  step "packages"
  make_packages
  step "a bare Debian 12"
  machines_base "$mirror" "$base"
  machine_make machine
  printf 'deb %s bookworm main\n' "$mirror" >"$work/machine/root/etc/apt/sources.list"
  machine_boot machine --bind-ro "$work/packages:/packages"
  check_installation
  check_enrolment
  check_run
  check_upgrade
  check_kill
  check_end
  check_purge
  step "end"
  say passed
}

main "$@"
