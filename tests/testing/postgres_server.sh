#!/usr/bin/env bash
# A PostgreSQL server in a folder of one's own, which is nobody's else: it listens on a socket in that folder alone.
# Connect with host=FOLDER user=terse dbname=postgres.
#
# usage: postgres_server.sh start FOLDER [SETTING=VALUE ...]    makes the folder's data at the first call
#        postgres_server.sh stop FOLDER [fast|immediate]
set -euo pipefail

fail() {
  printf 'postgres_server.sh: %s\n' "$1" >&2
  exit 1
}

programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
[[ -n "$programs" ]] || fail 'PostgreSQL is not installed; run: deploy/packages.sh test'

# The server refuses to be root's.
as_owner() {
  if [[ $EUID -eq 0 ]]; then
    setpriv --reuid=nobody --regid=nogroup --clear-groups env -C / "$@"
  else
    "$@"
  fi
}

start() {
  local folder=$1 setting
  shift
  if [[ ! -e "$folder/data" ]]; then
    mkdir -p "$folder"
    chmod 700 "$folder"
    [[ $EUID -ne 0 ]] || chown nobody:nogroup "$folder"
    as_owner "$programs/initdb" --pgdata "$folder/data" --username terse --auth trust --encoding UTF8 --locale C \
      --data-checksums --no-sync >"$folder.log" 2>&1 || fail "no data could be made: $(tail -3 "$folder.log")"
    {
      printf "listen_addresses = ''\nunix_socket_directories = '%s'\nmax_connections = 50\n" "$folder"
      for setting in "$@"; do printf '%s\n' "$setting"; done
    } >>"$folder/data/postgresql.conf"
  fi
  as_owner "$programs/pg_ctl" --pgdata "$folder/data" --log "$folder/log" --silent --wait start >/dev/null ||
    fail "the server does not start: $(tail -3 "$folder/log")"
}

case "${1-}" in
  start) start "${@:2}" ;;
  stop) as_owner "$programs/pg_ctl" --pgdata "$2/data" --mode "${3-fast}" --silent --wait stop ;;
  *) fail 'usage: postgres_server.sh start|stop FOLDER ...' ;;
esac
