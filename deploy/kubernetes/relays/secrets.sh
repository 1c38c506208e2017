#!/usr/bin/env bash
# Makes the secrets that the pods of this folder wait for: certificates, passwords and the clients' invitation.
set -euo pipefail

readonly TERSE_PROGRAM=deploy/kubernetes/relays/secrets.sh

usage() {
  cat <<'USAGE'
usage: deploy/kubernetes/relays/secrets.sh [--namespace NAME] [--relays N] [--clients N] [--help]

Issues certificates in the pod terse-authority-0 and makes these secrets of them with kubectl, which must reach the cluster:

  terse-coordinator-tls     the TLS folder of both coordinators
  terse-relay-tls           a certificate and a key for each of N relays, terse-relay-0 and so on
  terse-database-tls        the TLS folder of both database servers
  terse-database-passwords  the passwords of the servers' users
  terse-store               the authority of the servers, for the coordinators
  terse-invitation          the clients' invitation

Nothing of it stays in a file. Give the command again before the certificates end, after a year, or for more relays: all are
issued anew, the passwords stay, and each pod takes what is new when it starts.

  --namespace NAME  (default: terse)
  --relays N        as many as there may ever be: maxReplicas of the autoscaler (default: 8)
  --clients N       clients that may come with the invitation within 30 days (default: 1000)
USAGE
}

fail() {
  printf '%s: %s\n' "$TERSE_PROGRAM" "$1" >&2
  exit 1
}

number() {
  [[ "$2" =~ ^[1-9][0-9]{0,4}$ ]] || fail "$1 must be a number from 1 to 99999, not '$2'"
}

parse_arguments() {
  namespace=terse relays=8 clients=1000
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --namespace | --relays | --clients)
        [[ $# -ge 2 ]] || fail "$1 needs a value; see $TERSE_PROGRAM --help"
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
      *) fail "unknown argument '$1'; see $TERSE_PROGRAM --help" ;;
    esac
  done
  number --relays "$relays"
  number --clients "$clients"
  command -v kubectl >/dev/null || fail "kubectl is missing; install it, and let it reach the cluster"
}

# Prints the script that issues everything in the authority's pod, in memory, and writes it to standard output as an
# archive. Its arguments: the namespace, and the numbers of relays and of clients.
issue_all() {
  cat <<'SCRIPT'
set -eu
namespace=$1 relays=$2 clients=$3
rm -rf /tmp/issued
mkdir -m 0700 /tmp/issued
trap 'rm -rf /tmp/issued' EXIT
cd /tmp/issued
# hosts NAME...: the options for all names that pods of the cluster may use.
hosts() {
  for name in "$@"; do
    for end in '' ".$namespace.svc" ".$namespace.svc.cluster.local"; do printf -- '--host %s%s ' "$name" "$end"; done
  done
}
pki='tersectl pki --pki /terse/authority' databases='tersectl pki --pki /terse/databases'
{
  $pki issue coordinator main --out coordinator $(hosts terse-coordinator terse-coordinator-0.terse-coordinator \
    terse-coordinator-1.terse-coordinator terse-dashboard)
  mkdir relay
  for number in $(seq 0 $((relays - 1))); do
    name=terse-relay-$number
    $pki issue relay $name --out one $(hosts terse-relay $name.terse-relays)
    mv one/node.crt relay/$name.crt
    mv one/node.key relay/$name.key
    mv one/ca.crt one/crl.pem relay/
    rmdir one
  done
  $databases issue coordinator database --out database $(hosts terse-database-0.terse-database \
    terse-database-1.terse-database)
  $pki invite --address terse-authority:7701 --guests "$clients" --hours 720 --out invitation
} >&2
tar -c .
SCRIPT
}

kube() {
  kubectl --namespace "$namespace" "$@"
}

# secret NAME FROM...: makes the secret, or replaces what is in it.
secret() {
  local name=$1
  shift
  kube create secret generic "$name" "${@/#/--from-file=}" --dry-run=client --output yaml | kube apply --filename - >/dev/null
  echo "secret $name"
}

password() {
  od -An -N 24 -t x1 /dev/urandom | tr -d ' \n'
}

# The servers took the passwords when their data were made, so they are made once.
make_passwords() {
  if kube get secret terse-database-passwords >/dev/null 2>&1; then
    echo 'secret terse-database-passwords stays as it is'
    return
  fi
  password >"$work/terse.password"
  password >"$work/standby.password"
  secret terse-database-passwords "$work/terse.password" "$work/standby.password"
}

main() {
  parse_arguments "$@"
  work=$(mktemp -d -t terse-secrets.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  kube exec terse-authority-0 --container authority -- sh -c "$(issue_all)" issue "$namespace" "$relays" "$clients" \
    >"$work/issued.tar" 2>"$work/log" || {
    tail -n 3 "$work/log" >&2
    fail "the authority issued nothing, as above; is the pod terse-authority-0 ready?"
  }
  tar -x -C "$work" -f "$work/issued.tar"
  secret terse-coordinator-tls "$work/coordinator/"
  secret terse-relay-tls "$work/relay/"
  secret terse-database-tls "$work/database/"
  secret terse-store "$work/database/ca.crt"
  secret terse-invitation "$work/invitation"
  make_passwords
}

main "$@"
