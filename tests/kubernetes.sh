#!/usr/bin/env bash
# The Kubernetes manifests and the Helm chart against Kubernetes' own schemas, without a cluster: unknown fields and wrong
# types are errors.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/kubernetes.sh
readonly HELM_VERSION=v3.16.4
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"

usage() {
  cat <<'USAGE'
usage: tests/kubernetes.sh [--help]

Builds deploy/kubernetes with kustomize and deploy/helm/terse with Helm, checks every object strictly, and compares the
two. Needs kubectl (Debian: kubernetes-client), PyPI's kubernetes-validate, which it puts into a folder of its own, and
helm 3; where that is missing, Go (1.22 or newer) builds it there.
USAGE
}

# objects KIND: how many the build has.
objects() {
  grep -c "^kind: $1\$" "$work/all.yaml" || true
}

# validate FILE: whether every object of the file is as Kubernetes' schemas want it.
validate() {
  "$work/venv/bin/kubernetes-validate" --strict "$1" >"$work/validate.log" 2>&1
  ! grep -q '^ERROR' "$work/validate.log" || { cat "$work/validate.log"; return 1; }
  [[ "$(grep -c ' passed ' "$work/validate.log")" == "$(grep -c '^kind: ' "$1")" ]]
}

find_helm() {
  helm=$(command -v helm) && return
  command -v go >/dev/null || fail "helm is missing, and Go to build it with; install one of them"
  GOBIN=$work go install "helm.sh/helm/v3/cmd/helm@$HELM_VERSION" >"$work/helm.log" 2>&1 || fail "go cannot build helm" "$work/helm.log"
  helm=$work/helm
}

# chart FILE [OPTIONS...]: what the chart makes with these values.
chart() {
  local file=$1
  shift
  "$helm" template terse "$root/deploy/helm/terse" --kube-version 1.30.0 --namespace terse "$@" >"$file" 2>"$work/chart.log" || { cat "$work/chart.log"; return 1; }
}

# refused TEXT OPTIONS...: whether the chart's schema refuses these values with that text.
refused() {
  local text=$1
  shift
  ! "$helm" template terse "$root/deploy/helm/terse" --kube-version 1.30.0 "$@" >"$work/refused.log" 2>&1 && grep -q "$text" "$work/refused.log"
}

check_chart() {
  check "helm lint finds nothing" "$helm" lint --strict "$root/deploy/helm/terse"
  check "helm makes a package of the chart" "$helm" package "$root/deploy/helm/terse" --destination "$work"
  check "the chart's objects can be made" chart "$work/chart.yaml"
  check "every object of the chart is as Kubernetes' schemas want it" validate "$work/chart.yaml"
  check "with its own values the chart is the manifests" \
    "$work/venv/bin/python" "$root/tests/kubernetes/same_objects.py" "$work/all.yaml" "$work/chart.yaml"
  check "with other values too the chart's objects can be made" chart "$work/other.yaml" --set-file run="$root/deploy/runs/demo.toml" \
    --set coordinator.service.type=LoadBalancer,coordinator.extraHosts[0]=fleet.example,coordinator.extraArgs[0]=--keepalive=30 \
    --set coordinator.storage.className=fast,client.dataPath=/data,client.threads=2,imagePullSecrets[0]=registry
  check "and are as Kubernetes' schemas want them" validate "$work/other.yaml"
  check "the run file is in a ConfigMap" grep -q 'run.toml: ' "$work/other.yaml"
  check "the certificates are valid for the names of the values" grep -q 'terse-coordinator.terse.svc.cluster.local fleet.example' "$work/other.yaml"
  check "clients can be left out" chart "$work/alone.yaml" --set client.enabled=false
  check "and then there is no DaemonSet" test "$(grep -c '^kind: DaemonSet' "$work/alone.yaml")" = 0
  check "a value that the chart does not know is refused" refused clients --set clients.threads=2
  check "a value of a wrong type is refused" refused threads --set client.threads=many
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
  check "every object is as Kubernetes' schemas want it" validate "$work/all.yaml"
  check "only the init container mounts the whole volume" test "$(grep -c 'mountPath: /terse$' "$work/all.yaml")" = 1
  check "the authority's key is mounted in one container more" test "$(grep -c 'subPath: authority$' "$work/all.yaml")" = 1
  check "every container drops all capabilities" test "$(grep -c 'allowPrivilegeEscalation: false' "$work/all.yaml")" = \
    "$(grep -c 'image: terse:local' "$work/all.yaml")"
  find_helm
  check_chart
}

main "$@"
