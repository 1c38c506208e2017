#!/usr/bin/env bash
# The LeNet5-Caffe row of Table II in Sattler et al. 2018 (Sparse Binary Compression), on real MNIST with real processes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'USAGE'
usage: bench/sbc_table2.sh --data DIR [--out DIR] [--seed N] [--durability D] [--bin DIR] [--only NAME]...

Runs deploy/runs/lenet5-{baseline,fedavg,sbc1,sbc2,sbc3}.toml with 4 daemons on the MNIST files in DIR (2,000 iterations
a client each) through deploy/demo.sh and prints the table in Markdown. About 15 minutes on 2 cores.

  --out DIR    where the runs are kept (default: out/sbc-table2)
  --seed N     seed of the initial weights, the partition and the batches (default: 1)
  --durability strict|relaxed  (default: strict)
  --bin DIR    the executables to run (default: build/release/bin, built first)
  --only NAME  one of baseline fedavg sbc1 sbc2 sbc3; may be repeated
USAGE
}

data='' out=$root/out/sbc-table2 seed=1 durability=strict bin=() names=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --data) data=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --durability) durability=$2; shift 2 ;;
    --bin) bin=(--bin "$2"); shift 2 ;;
    --only) names+=("$2"); shift 2 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
[[ -n $data ]] || { usage >&2; exit 2; }
[[ ${#names[@]} -gt 0 ]] || names=(baseline fedavg sbc1 sbc2 sbc3)

mkdir -p "$out"
for name in "${names[@]}"; do
  # Both stand at the top level of the file, before the first table.
  { echo "seed = $seed"; echo "durability = '$durability'"; cat "$root/deploy/runs/lenet5-$name.toml"; } >"$out/$name.toml"
  rm -rf "${out:?}/$name"
  "$root/deploy/demo.sh" --run "$out/$name.toml" --data "$data" --out "$out" --name "$name" "${bin[@]}"
done
python3 "$root/bench/sbc_table2.py" "$out" "${names[@]}"
