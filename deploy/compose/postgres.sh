#!/bin/sh
# terse-postgres: one of two PostgreSQL servers for the runs of coordinators: a primary and its synchronous standby. What a
# server is, its data say; a server without data copies those of the other one.
set -eu

usage() {
  cat <<'USAGE'
usage: terse-postgres first | second | promote | synchronous | role | --help

  first        serves the database `terse` to the user `terse`. Makes it when neither of the two servers has data; a commit
               waits until the standby has it too
  second       the same, but never makes the database: waits for the first, copies it and follows it
  promote      in the container of a standby: makes it the primary. The old primary refuses to start from then on, as long
               as it finds this one: remove its data, and it becomes the standby
  synchronous  in the container of a promoted primary, once it has a standby again: commits wait for that
  role         says whether the server in this container is a primary or a standby

What it needs, and where (docs/CONTAINERS.md):

  NAME, PEER       host names of this server and of the other one; NAME's first label is what a primary calls its standby
  TLS_FOLDER       ca.crt, node.crt and node.key of this server (default: /etc/terse/tls)
  PASSWORD_FOLDER  the files terse.password and standby.password, of the two users (default: /etc/terse/passwords)
  PGDATA           the data (default: /var/lib/postgresql/data)
USAGE
}

fail() {
  printf 'terse-postgres: %s\n' "$1" >&2
  exit 1
}

check_needs() {
  [ -n "${NAME:+${PEER:-}}" ] || fail "set NAME and PEER to the host names of this server and of the other one"
  for file in "$tls/ca.crt" "$tls/node.crt" "$tls/node.key" "$passwords/terse.password" "$passwords/standby.password"; do
    [ -s "$file" ] || fail "no readable file '$file'; deploy/compose/prepare.sh --relays makes it"
  done
}

# PostgreSQL refuses a key, and libpq a password file, that others may read, and an orchestrator mounts both as it likes.
copy_secrets() {
  umask 077
  mkdir -p "$own"
  cp "$tls/ca.crt" "$tls/node.crt" "$tls/node.key" "$own/"
  printf '*:5432:*:standby:%s\n' "$(cat "$passwords/standby.password")" >"$own/pgpass"
  chmod 0600 "$own"/*
  peer="host=$PEER port=5432 user=standby application_name=${NAME%%.*} sslmode=verify-full"
  peer="$peer sslrootcert=$own/ca.crt passfile=$own/pgpass connect_timeout=5"
}

# Whether the other server is a primary. A connection for replication may ask that, and nothing else.
peer_is_primary() {
  [ "$(psql --no-psqlrc --tuples-only --no-align --command 'SHOW in_hot_standby' "$peer replication=true" 2>/dev/null)" = off ]
}

is_standby() {
  [ -e "$PGDATA/standby.signal" ]
}

# Who may come, and how: the two users over TLS with their passwords, and the container's own user through its socket.
write_access() {
  cat >"$PGDATA/pg_hba.conf" <<'ACCESS'
local   all          postgres       peer
hostssl terse        terse     all  scram-sha-256
hostssl replication  standby   all  scram-sha-256
ACCESS
}

# wait_for NAME: commits wait for the standby of that name; '' for none. In a file, so that it can change while the server
# runs, and written at every start, because a copy of the data has the other server's.
wait_for() {
  printf "synchronous_standby_names = '%s'\n" "${1:+\"$1\"}" >"$PGDATA/standbys.conf"
}

# Data that are half made are removed at the next start, because the file `made` comes last.
make_first() {
  initdb --pgdata "$PGDATA" --username postgres --auth peer --encoding UTF8 --locale C --data-checksums >/dev/null
  write_access
  pg_ctl --pgdata "$PGDATA" --silent --wait --options "-c listen_addresses= -c unix_socket_directories=$PGHOST" start \
    >/dev/null
  # psql reads the passwords itself, so that they are in nobody's list of processes.
  PASSWORDS=$passwords psql --quiet --no-psqlrc --username postgres --dbname postgres --set ON_ERROR_STOP=1 <<'SQL'
\set terse `cat "$PASSWORDS/terse.password"`
\set standby `cat "$PASSWORDS/standby.password"`
SET password_encryption = 'scram-sha-256';
CREATE USER terse PASSWORD :'terse';
CREATE USER standby REPLICATION PASSWORD :'standby';
CREATE DATABASE terse OWNER terse;
SQL
  pg_ctl --pgdata "$PGDATA" --silent --wait --mode fast stop >/dev/null
  echo "include 'standbys.conf'" >>"$PGDATA/postgresql.conf"
  touch "$PGDATA/made"
}

copy_peer() {
  pg_basebackup --dbname "$peer" --pgdata "$PGDATA" --checkpoint fast --wal-method stream
  write_access
  touch "$PGDATA/standby.signal" "$PGDATA/made"
}

# make_data first|second: that of the two servers which was there first has the database.
make_data() {
  rm -rf "$PGDATA"
  if [ "$1" = first ] && ! peer_is_primary; then
    make_first
    return
  fi
  until peer_is_primary; do sleep 0.5; done
  copy_peer
}

# The server in this process, as its data say. Two primaries would be two histories.
serve() {
  if is_standby; then
    wait_for ''
  elif peer_is_primary; then
    fail "$PEER was promoted and is the primary; remove this server's data, and it becomes the standby"
  else
    wait_for "${PEER%%.*}"
  fi
  set -- listen_addresses='*' unix_socket_directories="$PGHOST" primary_conninfo="$peer" log_destination=stderr \
    ssl=on ssl_min_protocol_version=TLSv1.3 ssl_ca_file="$own/ca.crt" ssl_cert_file="$own/node.crt" \
    ssl_key_file="$own/node.key" password_encryption=scram-sha-256 synchronous_commit=on wal_keep_size=256MB jit=off
  settings=$#
  for setting in "$@"; do set -- "$@" -c "$setting"; done
  shift "$settings"
  exec postgres -D "$PGDATA" "$@"
}

main() {
  export PGDATA="${PGDATA:-/var/lib/postgresql/data}" PGHOST="${PGHOST:-/tmp}"
  tls=${TLS_FOLDER:-/etc/terse/tls} passwords=${PASSWORD_FOLDER:-/etc/terse/passwords} own=/tmp/secrets
  case "${1:---help}" in
    -h | --help) usage ;;
    first | second)
      check_needs
      copy_secrets
      [ -e "$PGDATA/made" ] || make_data "$1"
      serve
      ;;
    promote) pg_ctl --pgdata "$PGDATA" --silent --wait promote && echo 'this server is the primary now' ;;
    synchronous)
      ! is_standby || fail "this server is a standby; the primary waits for its standby"
      wait_for "${PEER%%.*}"
      pg_ctl --pgdata "$PGDATA" --silent reload
      ;;
    role) if is_standby; then echo standby; else echo primary; fi ;;
    *) fail "unknown command '$1'; see terse-postgres --help" ;;
  esac
}

main "$@"
