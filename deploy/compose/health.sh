#!/bin/sh
# terse-health: whether the coordinator or relay in this container is well, for the container's health check. A coordinator
# that stands by is well, although it serves nobody: `tersectl status` alone would call it broken.
set -eu

usage() {
  cat <<'USAGE'
usage: terse-health [--help]

Asks the coordinator or relay at $TERSE_ADMIN. Ends with 0 when it serves its runs or stands by for another coordinator of
the same store, and with 1 and the answer when it does neither. `tersectl status` ends with 0 only where runs are served.
USAGE
}

case "${1:-}" in
  '') ;;
  -h | --help) usage; exit 0 ;;
  *) printf "terse-health: unknown argument '%s'; see terse-health --help\n" "$1" >&2; exit 1 ;;
esac
if answer=$(tersectl --timeout 4 status 2>&1); then
  echo serves
  exit 0
fi
case "$answer" in
  *'waits to serve'*) echo 'stands by' ;;
  *) printf '%s\n' "$answer" >&2; exit 1 ;;
esac
