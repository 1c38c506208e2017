#!/usr/bin/env bash
# The Kubernetes manifests against Kubernetes' own schemas, without a cluster: unknown fields and wrong types are errors.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/kubernetes.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"

usage() {
  cat <<'USAGE'
usage: tests/kubernetes.sh [--help]

Builds deploy/kubernetes with kustomize and checks every object strictly. Needs kubectl (Debian: kubernetes-client) and
PyPI's kubernetes-validate, which it puts into a folder of its own.
USAGE
}

# objects KIND: how many the build has.
objects() {
  grep -c "^kind: $1\$" "$work/all.yaml" || true
}

validate() {
  "$work/venv/bin/kubernetes-validate" --strict "$work/all.yaml" >"$work/validate.log" 2>&1
  ! grep -q '^ERROR' "$work/validate.log" || { cat "$work/validate.log"; return 1; }
  [[ "$(grep -c ' passed ' "$work/validate.log")" == "$(grep -c '^kind: ' "$work/all.yaml")" ]]
}

main() {
  case "${1:-}" in
    '') ;;
    -h | --help) usage; exit 0 ;;
    *) fail "unknown argument '$1'; see $TERSE_PROGRAM --help" ;;
  esac
  command -v kubectl >/dev/null || fail "kubectl is missing; run: apt-get install kubernetes-client"
  work=$(mktemp -d -t terse-kubernetes.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet kubernetes-validate >"$work/pip.log" 2>&1 || fail "pip failed" "$work/pip.log"
  kubectl kustomize "$root/deploy/kubernetes" >"$work/all.yaml" 2>"$work/kustomize.log" ||
    fail "kustomize refuses deploy/kubernetes" "$work/kustomize.log"
  local kind
  for kind in Namespace Service StatefulSet DaemonSet ConfigMap; do
    check "there is a $kind" test "$(objects $kind)" = 1
  done
  check "there are two NetworkPolicies" test "$(objects NetworkPolicy)" = 2
  check "every object is as Kubernetes' schemas want it" validate
  check "only the init container mounts the whole volume" test "$(grep -c 'mountPath: /terse$' "$work/all.yaml")" = 1
  check "the authority's key is mounted in one container more" test "$(grep -c 'subPath: authority$' "$work/all.yaml")" = 1
  check "every container drops all capabilities" test "$(grep -c 'allowPrivilegeEscalation: false' "$work/all.yaml")" = \
    "$(grep -c 'image: terse:local' "$work/all.yaml")"
}

main "$@"
