#!/bin/sh
# Before the coordinator starts: the authority and the coordinator's certificate, on the volume, unless they are there.
# Every start renews the certificate, for a year.
set -eu
cd /terse
# The coordinator's container mounts this folder, so it must be there, and this user's.
[ -d state ] || mkdir -m 0700 state
[ -e authority/ca.crt ] || tersectl pki --pki authority init
hosts="--host terse-coordinator --host terse-coordinator.terse.svc --host terse-coordinator.terse.svc.cluster.local"
if [ ! -e tls/node.crt ]; then
  # shellcheck disable=SC2086  # words
  tersectl pki --pki authority issue coordinator main $hosts --out tls
else
  tersectl pki --pki authority issue coordinator main --renew --out tls
fi
