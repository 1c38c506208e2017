#!/bin/sh
# Before the coordinator starts: the authority and the coordinator's certificate, on the volume, unless they are there.
# Every start renews the certificate, for a year. TERSE_HOSTS: the names that it is valid for.
set -eu
cd /terse
# The coordinator's container mounts this folder, so it must be there, and this user's.
[ -d state ] || mkdir -m 0700 state
[ -e authority/ca.crt ] || tersectl pki --pki authority init
renew='' names='terse-coordinator terse-coordinator.terse.svc terse-coordinator.terse.svc.cluster.local'
if [ -e tls/node.crt ]; then
  renew=--renew names=''  # it keeps the names that it has
fi
hosts=''
for host in ${TERSE_HOSTS:-$names}; do
  hosts="$hosts --host $host"
done
# shellcheck disable=SC2086  # words
tersectl pki --pki authority issue coordinator main $hosts $renew --out tls
