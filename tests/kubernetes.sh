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

Builds deploy/kubernetes and its folder relays with kustomize and deploy/helm/terse with Helm, checks every object strictly,
and compares manifests and chart. Needs kubectl (Debian: kubernetes-client), PyPI's kubernetes-validate, which it puts into a
folder of its own, and helm 3; where that is missing, Go (1.22 or newer) builds it there.
USAGE
}

# objects FILE KIND: how many the file has.
objects() {
  grep -c "^kind: $2\$" "$1" || true
}

# build FOLDER FILE: what kustomize makes of it.
build() {
  kubectl kustomize "$root/$1" >"$2" 2>"$work/kustomize.log" || fail "kustomize refuses $1" "$work/kustomize.log"
}

# locked FILE: whether every container of it drops all capabilities and cannot write beside its volumes.
locked() {
  local containers
  containers=$(grep -cE '^ +(- )?image: ' "$1")
  [[ "$(grep -c 'allowPrivilegeEscalation: false' "$1")" == "$containers" ]] &&
    [[ "$(grep -c 'readOnlyRootFilesystem: true' "$1")" == "$containers" ]]
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
  check "with relays too" chart "$work/tree.yaml" --set relays.enabled=true
  check "and they are as Kubernetes' schemas want them" validate "$work/tree.yaml"
  check "and are the overlay with relays" \
    "$work/venv/bin/python" "$root/tests/kubernetes/same_objects.py" "$work/relays.yaml" "$work/tree.yaml"
  check "with other values of relays they can be made" chart "$work/tree.yaml" --set relays.enabled=true,relays.clientsPerRelay=50 \
    --set relays.max=4,relays.storage.className=fast,relays.database.storage.className=fast,imagePullSecrets[0]=registry
  check "and are as Kubernetes' schemas want them" validate "$work/tree.yaml"
  check "a relay waits for that many clients" grep -q -- '--clients=50' "$work/tree.yaml"
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

check_one_coordinator() {
  local all=$work/all.yaml kind
  build deploy/kubernetes "$all"
  for kind in Namespace Service StatefulSet DaemonSet ConfigMap; do
    check "there is a $kind" test "$(objects "$all" $kind)" = 1
  done
  check "there are two NetworkPolicies" test "$(objects "$all" NetworkPolicy)" = 2
  check "every object is as Kubernetes' schemas want it" validate "$all"
  check "only the init container mounts the whole volume" test "$(grep -c 'mountPath: /terse$' "$all")" = 1
  check "the authority's key is mounted in one container more" test "$(grep -c 'subPath: authority$' "$all")" = 1
  check "every container drops all capabilities" locked "$all"
}

# relays EXPRESSION: of the objects with relays, which are `it`, by kind and name.
relays() {
  "$work/venv/bin/python" "$root/tests/kubernetes/look.py" "$work/relays.yaml" "$1"
}

check_tree() {
  build deploy/kubernetes/relays "$work/relays.yaml"
  check "every object of the overlay with relays is as Kubernetes' schemas want it" validate "$work/relays.yaml"
  check "every container there drops all capabilities" locked "$work/relays.yaml"
  check "there are two coordinators and two database servers" relays \
    'all(it["StatefulSet", f"terse-{name}"]["spec"]["replicas"] == 2 for name in ("coordinator", "database"))'
  check "ready is the coordinator that serves, and alive also the one that stands by" relays \
    'probes(it["StatefulSet", "terse-coordinator"]) == ("tersectl status", "terse-health")'
  check "ready is a relay that has joined its run, and alive also one that has not" relays \
    'probes(it["StatefulSet", "terse-relay"]) == ("tersectl status", "tersectl runs")'
  check "no coordinator has the authority's key" relays '"authority" not in str(it["StatefulSet", "terse-coordinator"])'
  check "the number of relays is the autoscaler's alone" relays \
    '"replicas" not in it["StatefulSet", "terse-relay"]["spec"] and it["HorizontalPodAutoscaler", "terse-relay"]'
  check "which wants as many clients for each as a relay waits for" relays \
    '"--clients=" + target(it["HorizontalPodAutoscaler", "terse-relay"]) in command(it["StatefulSet", "terse-relay"])'
  check "by a metric that a relay has" grep -q '"terse_clients"' "$root/coordinator/web/metrics.cc"
  check "every pod has a network policy" relays 'workloads(it) == policies(it)'
  check "every service leads to pods" relays 'services(it) <= workloads(it)'
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
  check_one_coordinator
  check_tree
  find_helm
  check_chart
}

main "$@"
