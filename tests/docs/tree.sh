#!/usr/bin/env bash
# A document's commands for the machine `tree`: run where this tree was built, in a copy of this system that they may
# write to and that is gone afterwards, with a loopback network of its own. Run by ctest, once a document.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/docs/tree.sh
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/checks.sh
source "$root/tests/checks.sh"
# shellcheck source=tests/docs/steps.sh
source "$root/tests/docs/steps.sh"

readonly CANNOT=77  # the exit code for ctest's "skipped"
readonly HOSTS="localhost coordinator.example fleet.example authority.example"

usage() {
  cat <<USAGE
usage: tests/docs/tree.sh DOCUMENT

Runs the document's commands that are for \`tree\` (tests/docs/blocks.py), with this folder as home and build/release/bin
in PATH, and prints a line for every block. They see this system and may change any file: what they write is in memory
and goes with the last of their processes. $HOSTS are this machine, and \`terse\` is another
name of root's. Ends with $CANNOT where namespaces are not allowed.
USAGE
}

# Namespaces, so that nothing of the document's outlives it or meets anybody else.
enter_namespaces() {
  local options=(--mount --uts --ipc --net --pid --fork --kill-child --mount-proc)
  [[ $EUID -eq 0 ]] || options+=(--user --map-root-user)
  unshare "${options[@]}" true 2>/dev/null || {
    say "this machine allows no namespaces (unshare); not run"
    exit $CANNOT
  }
  work=$(mktemp -d -t terse-docs.XXXXXX)
  trap 'rmdir "$work"' EXIT
  unshare "${options[@]}" env TERSE_DOCS_WORK="$work" "$root/tests/docs/tree.sh" "$@"
}

# Everything that is written from now on goes to memory.
make_system() {
  work=$TERSE_DOCS_WORK
  ip link set lo up
  mount -t tmpfs tmpfs "$work"
  mkdir "$work/upper" "$work/scratch" "$work/system"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/scratch" "$work/system"
  mount_tree
  mount --rbind /dev "$work/system/dev"
  mount --rbind /sys "$work/system/sys"
  mount -t proc proc "$work/system/proc"
  printf '127.0.0.1 %s\n' "$HOSTS" >"$work/system/etc/hosts"
  printf 'terse:x:0:0::/:/usr/sbin/nologin\n' >>"$work/system/etc/passwd"
}

# Where the tree is on another file system than /, the first overlay has it not.
mount_tree() {
  [[ ! -e "$work/system$root/CMakeLists.txt" ]] || return 0
  mkdir -p "$work/system$root" "$work/tree" "$work/tree-scratch"
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/tree,workdir=$work/tree-scratch" "$work/system$root"
}

# What was compiled before need not be compiled again: HOME, where ccache looks, is another one there.
entrance() {
  local compiled=''
  ! command -v ccache >/dev/null || compiled=$(ccache --get-config cache_dir)
  entry=(unshare --root="$work/system" env -i HOME="$root" LC_ALL=C.UTF-8 ${compiled:+"CCACHE_DIR=$compiled"}
    PATH="$root/build/release/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

place() {
  local path=${1#*:}
  printf '%s%s' "$work/system" "${path/#\~/$root}"
}

main() {
  [[ "${1:-}" != -h && "${1:-}" != --help ]] || { usage; exit 0; }
  [[ $# -eq 1 && -r "$root/$1" ]] || fail "one document, as a path in this tree; see tests/docs/tree.sh --help"
  if [[ -z "${TERSE_DOCS_WORK:-}" ]]; then
    enter_namespaces "$@"
    return
  fi
  make_system
  read_steps "$1" --tree
  run_steps
  say "$1: $SECONDS s"
}

main "$@"
