#!/bin/sh
# terse-postgres: a PostgreSQL server for the runs of coordinators, as the primary or as its synchronous standby. It makes
# its data when there are none, and otherwise goes on with them.
set -eu

usage() {
  cat <<'USAGE'
usage: terse-postgres primary | standby | promote | role | --help

  primary  serves the database `terse` to the user `terse`. A commit waits until the standby has it too
  standby  copies the primary and follows it, until it is promoted
  promote  in the container of a standby: makes it the primary. See first that the old one never comes back
  role     says whether the server in this container is a primary or a standby now

What it needs, and where (docs/CONTAINERS.md):

  PRIMARY            host name of the primary, for its standby (default: database-1)
  STANDBY            name of the standby that commits wait for; empty: they wait for none (default: database-2)
  TLS_FOLDER         ca.crt, node.crt and node.key of this server (default: /etc/terse/tls)
  PASSWORD_FOLDER    the files terse.password and standby.password, of the two users (default: /etc/terse/passwords)
  PGDATA             the data (default: /var/lib/postgresql/data)
USAGE
}

fail() {
  printf 'terse-postgres: %s\n' "$1" >&2
  exit 1
}

check_files() {
  for file in "$tls/ca.crt" "$tls/node.crt" "$tls/node.key" "$passwords/terse.password" "$passwords/standby.password"; do
    [ -s "$file" ] || fail "no readable file '$file'; deploy/compose/prepare.sh --relays makes it"
  done
}

# PostgreSQL refuses a key, and libpq a password file, that others may read, and an orchestrator mounts both as it likes.
copy_secrets() {
  umask 077
  mkdir -p "$own"
  cp "$tls/ca.crt" "$tls/node.crt" "$tls/node.key" "$own/"
  printf '%s:5432:*:standby:%s\n' "$primary" "$(cat "$passwords/standby.password")" >"$own/pgpass"
  chmod 0600 "$own"/*
}

# Who may come, and how: the two users over TLS with their passwords, and the container's own user through its socket.
write_access() {
  cat >"$PGDATA/pg_hba.conf" <<'ACCESS'
local   all          postgres       peer
hostssl terse        terse     all  scram-sha-256
hostssl replication  standby   all  scram-sha-256
ACCESS
}

# Data that are half made are removed at the next start, because the file `made` comes last.
make_primary() {
  rm -rf "$PGDATA"
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
  touch "$PGDATA/made"
}

make_standby() {
  until pg_isready --quiet --host "$primary" --port 5432; do sleep 0.5; done
  rm -rf "$PGDATA"
  pg_basebackup --dbname "$upstream" --pgdata "$PGDATA" --checkpoint fast --wal-method stream
  write_access
  touch "$PGDATA/standby.signal" "$PGDATA/made"
}

# serve SETTING...: the server in this process. The settings come with the command line, so that a copy of the data has
# none that are another server's.
serve() {
  set -- "$@" listen_addresses='*' unix_socket_directories="$PGHOST" ssl=on ssl_min_protocol_version=TLSv1.3 \
    ssl_ca_file="$own/ca.crt" ssl_cert_file="$own/node.crt" ssl_key_file="$own/node.key" \
    password_encryption=scram-sha-256 wal_keep_size=256MB max_wal_senders=8 jit=off log_destination=stderr
  settings=$#
  for setting in "$@"; do set -- "$@" -c "$setting"; done
  shift "$settings"
  exec postgres -D "$PGDATA" "$@"
}

main() {
  export PGDATA="${PGDATA:-/var/lib/postgresql/data}" PGHOST="${PGHOST:-/tmp}"
  tls=${TLS_FOLDER:-/etc/terse/tls} passwords=${PASSWORD_FOLDER:-/etc/terse/passwords}
  primary=${PRIMARY:-database-1} standby=${STANDBY-database-2} own=/tmp/secrets
  upstream="host=$primary port=5432 user=standby application_name=${STANDBY:-database-2} sslmode=verify-full"
  upstream="$upstream sslrootcert=$own/ca.crt passfile=$own/pgpass connect_timeout=5"
  case "${1:---help}" in
    -h | --help) usage ;;
    primary)
      check_files
      copy_secrets
      [ -e "$PGDATA/made" ] || make_primary
      serve synchronous_standby_names="${standby:+\"$standby\"}" synchronous_commit=on
      ;;
    standby)
      check_files
      copy_secrets
      [ -e "$PGDATA/made" ] || make_standby
      serve primary_conninfo="$upstream" synchronous_standby_names=
      ;;
    promote) pg_ctl --pgdata "$PGDATA" --silent --wait promote && echo 'this server is the primary now' ;;
    role) if [ -e "$PGDATA/standby.signal" ]; then echo standby; else echo primary; fi ;;
    *) fail "unknown command '$1'; see terse-postgres --help" ;;
  esac
}

main "$@"
