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

readonly ROUNDS=200
readonly PATIENCE=300  # seconds for anything that must happen
# What `systemd-analyze security` may find at most: 0 is sealed off, 10 is open.
readonly EXPOSURE=2.5

usage() {
  cat <<'USAGE'
usage: tests/packages.sh [--mirror URL] [--base DIR] [--help]

Makes the packages twice (revisions 1 and 2), boots a bare Debian 12 with systemd-nspawn and checks there that they
install, serve, survive an upgrade and a kill in the middle of a run, leave what was trained when they are purged, and
find it again. Prints a line for every check, the time each step took, and `passed` at the end. Needs root.

  --mirror URL   Debian mirror (default: http://deb.debian.org/debian)
  --base DIR     a system to copy instead of making one: what debootstrap left there, or an earlier call of this script
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

# step TEXT: what follows belongs to it; says how long the step before took.
step() {
  [[ -z "${step_text:-}" ]] || say "$step_text: $((SECONDS - step_begin)) s"
  step_text=$1 step_begin=$SECONDS
}

# check TEXT COMMAND...: fails with the text unless the command succeeds.
check() {
  local text=$1
  shift
  "$@" >"$work/check.log" 2>&1 || fail "not true: $text ('$*' ended with $?)" "$work/check.log"
  say "ok: $text"
}

# soon TEXT COMMAND...: as check, but it may become true only after a while.
soon() {
  local text=$1 deadline=$((SECONDS + PATIENCE))
  shift
  until "$@" >"$work/check.log" 2>&1; do
    [[ $SECONDS -lt $deadline ]] || fail "not true after $PATIENCE s: $text ('$*')" "$work/check.log"
    sleep 0.2
  done
  say "ok: $text"
}

make_base() {
  if [[ -z "$base" ]]; then
    base=$work/base
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$base" "$mirror" \
      >"$work/debootstrap.log" 2>&1 || fail "debootstrap failed, as above; check --mirror" "$work/debootstrap.log"
  fi
  cp -a "$base" "$work/machine"
  printf 'deb %s bookworm main\n' "$mirror" >"$work/machine/etc/apt/sources.list"
  # Manuals are part of what is checked.
  rm -f "$work"/machine/etc/dpkg/dpkg.cfg.d/*
}

make_packages() {
  local revision
  for revision in 1 2; do
    "$root/deploy/package.sh" --revision "$revision" --out "$work/packages/$revision" >"$work/package.log"
  done
}

# With the right to lock memory, which a machine gives and a container does not: a library of LibTorch's wants 16 KB.
boot() {
  systemd-nspawn --capability=CAP_IPC_LOCK --register=no --keep-unit --quiet --console=pipe --boot \
    --directory "$work/machine" --bind-ro "$work/packages:/packages" >"$work/boot.log" 2>&1 &
  container=$!
  soon "the machine boots" find_leader
  soon "its services are up" within systemctl is-active --quiet multi-user.target
}

find_leader() {
  leader=$(pgrep --parent "$container" | head -n 1)
  [[ -n "$leader" ]]
}

# within COMMAND...: in the machine.
within() {
  nsenter --target "$leader" --mount --uts --ipc --net --pid --root --wd=/ \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

shutdown() {
  [[ -n "${container:-}" ]] || return 0
  [[ -z "${leader:-}" ]] || kill -SIGRTMIN+4 "$leader" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "$container" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$leader" "$container" 2>/dev/null || true
}

finish() {
  local rc=$?
  shutdown
  if [[ $rc -ne 0 && -d "$work/machine/var/log/journal" ]]; then
    journalctl --directory "$work/machine/var/log/journal" -u 'terse-*' -n 30 --no-pager >&2 || true
  fi
  rm -rf --one-file-system "$work"
}

install_revision() {
  within sh -c "apt-get -qq -o Dpkg::Use-Pty=0 install --no-install-recommends \
    /packages/$1/terse-coordinator_*.deb /packages/$1/terse-client_*.deb /packages/$1/tersectl_*.deb"
}

rounds() {
  within tersectl --json status | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])'
}

at_least() {
  [[ "$(rounds)" -ge "$1" ]]
}

pid_of() {
  within systemctl show --property MainPID --value "$1"
}

exposure_is_low() {
  within systemd-analyze security --no-pager "$1" |
    awk -v most=$EXPOSURE '/Overall exposure level/ {
      for (i = 1; i <= NF; ++i) if ($i ~ /^[0-9.]+$/) { found = 1; print $i; exit !($i <= most) } }
      END { if (!found) exit 1 }'
}

check_installation() {
  step "installation"
  check "the packages install with what they need" install_revision 1
  check "nothing was started" within sh -c '! systemctl is-active --quiet terse-coordinator terse-client'
  check "nothing was enabled" within sh -c '! systemctl is-enabled --quiet terse-coordinator terse-client'
  check "the units have no mistake" within systemd-analyze verify --man=no --recursive-errors=no \
    /usr/lib/systemd/system/terse-coordinator.service /usr/lib/systemd/system/terse-client.service
  check "the certificates' folder is the service's alone" \
    within sh -c '[ "$(stat -c "%U %a" /etc/terse/tls)" = "terse 700" ]'
  check "tersectl has its manual" within test -s /usr/share/man/man1/tersectl.1
  check "and its completion" within test -s /usr/share/bash-completion/completions/tersectl
  check "LibTorch computes with OpenBLAS" \
    within sh -c 'readlink -f /usr/lib/*/libblas.so.3 | grep -q openblas'
  local unit
  for unit in terse-coordinator terse-client; do
    check "$unit is sealed off (exposure at most $EXPOSURE of 10)" exposure_is_low "$unit"
  done
}

check_run() {
  step "a run as services"
  check "the coordinator starts" within systemctl enable --now --quiet terse-coordinator
  soon "tersectl reaches it where it looks by itself" within tersectl runs
  within sed 's/^count = .*/count = '$ROUNDS'/; s/^clients = .*/clients = 1/' /usr/share/terse/runs/demo.toml \
    >"$work/machine/var/tmp/run.toml"
  check "a run is made" within tersectl run create --run /var/tmp/run.toml
  check "the client starts" within systemctl enable --now --quiet terse-client
  soon "rounds commit" at_least 5
  check "the dashboard answers" within sh -c "printf 'GET /api/v1/runs HTTP/1.0\r\nHost: 127.0.0.1:7780\r\n\r\n' |
    bash -c 'exec 3<>/dev/tcp/127.0.0.1/7780; cat >&3; cat <&3' | grep -q demo"
  local service
  for service in terse-coordinator terse-client; do
    check "$service runs as the user terse" \
      within sh -c "[ \$(stat -c %U /proc/$(pid_of $service)) = terse ]"
  done
}

check_upgrade() {
  step "an upgrade in the middle of the run"
  local coordinator client before
  coordinator=$(pid_of terse-coordinator) client=$(pid_of terse-client) before=$(rounds)
  within sed -i '$a # an edit' /etc/terse/client.env
  check "the packages are upgraded" install_revision 2
  check "the coordinator is the new one" test "$(pid_of terse-coordinator)" -ne "$coordinator"
  check "the client is the new one" test "$(pid_of terse-client)" -ne "$client"
  check "the configuration is as it was edited" within grep -q 'an edit' /etc/terse/client.env
  soon "the run goes on" at_least $((before + 5))
}

check_kill() {
  step "killed processes"
  local service before
  for service in terse-coordinator terse-client; do
    before=$(rounds)
    within systemctl kill --signal=KILL --kill-whom=main $service
    soon "after a kill of $service the run goes on" at_least $((before + 5))
  done
}

check_end() {
  step "the run's end"
  check "no library complains of the walls around it" \
    within sh -c '! journalctl --quiet -u terse-coordinator -u terse-client | grep -i warning:'
  soon "all $ROUNDS rounds are committed" at_least $ROUNDS
  soon "the client has ended in order" within sh -c '! systemctl is-active --quiet terse-client'
  check "as a success" within sh -c '! systemctl is-failed --quiet terse-client'
  check "no residual was lost" within sh -c 'tersectl --json clients | grep -q "\"resets\": *0"'
  within tersectl summary
}

check_purge() {
  step "purge, and installed again"
  check "the packages are purged" within apt-get -qq -o Dpkg::Use-Pty=0 purge terse-coordinator terse-client tersectl
  check "the services are gone" within sh -c '! systemctl cat terse-coordinator terse-client'
  check "no process is left" within sh -c '! find /proc -maxdepth 1 -user terse | grep .'
  check "the configuration is gone" within test ! -e /etc/terse
  check "what was trained is still there" within test -s /var/lib/terse/runs/demo/run.sqlite
  check "and the residual" within test -d /var/lib/terse-client
  check "the packages install again" install_revision 2
  check "the coordinator starts again" within systemctl start terse-coordinator
  soon "with the run that it had" within sh -c 'tersectl runs | grep -q "demo.*finished"'
}

main() {
  parse_arguments "$@"
  terse_install_packages build packaging
  work=$(mktemp -d -t terse-packages.XXXXXX)
  trap finish EXIT
  trap 'exit 130' INT TERM
  step "packages"
  make_packages
  step "a bare Debian 12"
  make_base
  boot
  check_installation
  check_run
  check_upgrade
  check_kill
  check_end
  check_purge
  step "end"
  say passed
}

main "$@"
