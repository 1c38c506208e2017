#!/usr/bin/env bash
# A PostgreSQL server in a folder of one's own, which is nobody's else: it listens on a socket in that folder alone.
# Connect with host=FOLDER user=terse dbname=postgres.
#
# usage: postgres_server.sh start FOLDER [SETTING=VALUE ...]    makes the folder's data at the first call
#        postgres_server.sh standby FOLDER PRIMARY              makes a copy of the server in the folder PRIMARY, which
#                                                               follows it under the name 'standby', and starts it
#        postgres_server.sh promote FOLDER                      makes a standby a primary
#        postgres_server.sh set FOLDER SETTING=VALUE ...        changes settings while the server runs
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

make_folder() {
  mkdir -p "$1"
  chmod 700 "$1"
  [[ $EUID -ne 0 ]] || chown nobody:nogroup "$1"
}

# The last of several values of a setting counts.
configure() {
  local folder=$1
  shift
  [[ $# -eq 0 ]] || printf '%s\n' "$@" >>"$folder/data/postgresql.conf"
}

launch() {
  as_owner "$programs/pg_ctl" --pgdata "$1/data" --log "$1/log" --silent --wait start >/dev/null ||
    fail "the server does not start: $(tail -3 "$1/log")"
}

start() {
  local folder=$1
  shift
  if [[ ! -e "$folder/data" ]]; then
    make_folder "$folder"
    as_owner "$programs/initdb" --pgdata "$folder/data" --username terse --auth trust --encoding UTF8 --locale C \
      --data-checksums --no-sync >"$folder.log" 2>&1 || fail "no data could be made: $(tail -3 "$folder.log")"
    configure "$folder" "listen_addresses = ''" "unix_socket_directories = '$folder'" 'max_connections = 50' "$@"
  fi
  launch "$folder"
}

standby() {
  local folder=$1 primary=$2
  make_folder "$folder"
  as_owner "$programs/pg_basebackup" --host "$primary" --username terse --pgdata "$folder/data" --checkpoint fast \
    --wal-method stream --no-sync >"$folder.log" 2>&1 || fail "no copy could be made: $(tail -3 "$folder.log")"
  configure "$folder" "unix_socket_directories = '$folder'" "synchronous_standby_names = ''" \
    "primary_conninfo = 'host=$primary user=terse application_name=standby'"
  as_owner touch "$folder/data/standby.signal"
  launch "$folder"
}

change() {
  configure "$@"
  as_owner "$programs/pg_ctl" --pgdata "$1/data" --silent reload
}

case "${1-}" in
  start) start "${@:2}" ;;
  standby) standby "$2" "$3" ;;
  promote) as_owner "$programs/pg_ctl" --pgdata "$2/data" --silent --wait promote ;;
  set) change "${@:2}" ;;
  stop) as_owner "$programs/pg_ctl" --pgdata "$2/data" --mode "${3-fast}" --silent --wait stop ;;
  *) fail 'usage: postgres_server.sh start|standby|promote|set|stop FOLDER ...' ;;
esac
