#!/usr/bin/env bash
# The build for arm64 on a bare Debian 12 of another kind: its tests run with qemu, and its client trains with this machine's
# coordinator and Python.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/arm64.sh
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"
# shellcheck source=tests/bare_machine.sh
source "$root/tests/bare_machine.sh"

usage() {
  cat <<'USAGE'
usage: tests/arm64.sh [--only-packages] [--bin DIR] [--jobs N] [--mirror URL] [--cache DIR] [--help]

Makes a bare Debian 12 with debootstrap and clones this tree's HEAD into it. There deploy/build.sh installs the cross compiler and
builds the preset arm64, and ctest runs its tests with qemu. Then the client for arm64, run with qemu as well, trains with a coordinator
and Python programs of this machine: what it sends and what it comes to must be this machine's client's, bit for bit
(tests/python/same_bits.py), and nothing may be lost when it is killed (tests/python/conservation_test.py). At last it makes the packages
and the container image for arm64 there, and runs the image's programs with qemu. Prints what each step took. Needs root and a Debian
mirror; Python with NumPy, and a build of the preset release.

  --only-packages  the packages and the image alone, without the tests

  --bin DIR      this machine's programs (default: build/release/bin)
  --jobs N       compilers at a time (default: the processors)
  --mirror URL   Debian mirror (default: the one in /etc/apt)
  --cache DIR    the bare system and the downloaded packages, kept between runs (default: ~/.cache/terse-bare)
USAGE
}

parse_arguments() {
  only_packages=0 bin=$root/build/release/bin jobs=$(nproc) suite=bookworm mirror=$(mirror_of_apt) cache=$(default_cache)
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --only-packages) only_packages=1; shift ;;
      --bin) bin=$(absolute "$(value_of "$@")"); shift 2 ;;
      --jobs) jobs=$(value_of "$@"); shift 2 ;;
      --mirror) mirror=$(value_of "$@"); shift 2 ;;
      --cache) cache=$(absolute "$(value_of "$@")"); shift 2 ;;
      *) unknown_argument "$1" ;;
    esac
  done
  [[ "$jobs" =~ ^[1-9][0-9]*$ ]] || fail "--jobs must be a positive number, not '$jobs'"
  [[ $only_packages -eq 1 ]] || [[ -x "$bin/terse-coordinator" && -e "$bin/../python/terse/__init__.py" ]] ||
    fail "$bin has no terse-coordinator, or no package for Python beside it; build the preset release, or name its programs with --bin"
  check_bare
}

# step NAME COMMAND...: says how long the command took, or ends with its output.
step() {
  local name=$1 begin=$SECONDS log
  shift
  log=$work/$name.log
  "$@" >"$log" 2>&1 || fail "$name failed, as above; the whole output was in $log" "$log"
  say "$name $((SECONDS - begin)) s"
}

# on_tree COMMAND...: as root on the bare machine, in the tree.
on_tree() {
  on_machine /root/terse "$@"
}

bring_tree() {
  git -c advice.detachedHead=false clone --quiet "$root" "$system/root/terse"
  mkdir -p "$cache/archives/partial"
  mount --bind "$cache/archives" "$system/var/cache/apt/archives"
}

install_packages() {
  on_tree deploy/packages.sh arm64
}

# Sets mixed to a folder with this machine's programs, and the client of the other kind in place of its own. What the tests keep in
# temporary folders has the same path for both.
make_mixed() {
  mixed=$work/mixed/bin
  mkdir -p "$mixed" "$work/tmp" "$system$work/tmp"
  mount --bind "$work/tmp" "$system$work/tmp"
  ln -s "$bin/../python" "$work/mixed/python"
  ln -s "$bin"/* "$mixed/"
  rm "$mixed/terse-client"
  printf '#!/bin/sh\nexec chroot %q qemu-aarch64 /root/terse/build/arm64/bin/terse-client "$@"\n' "$system" >"$mixed/terse-client"
  chmod 0755 "$mixed/terse-client"
}

# of_python SCRIPT ARGUMENT...: one of tests/python, with this machine's interpreter and package.
of_python() {
  local script=$root/tests/python/$1
  shift
  env TMPDIR="$work/tmp" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$bin/../python" TERSE_BIN="$bin" /usr/bin/python3 "$script" "$@"
}

# What arm64_image.sh unpacked, as the file system of a container.
unpack_image() {
  mkdir -p "$system/image"
  tar -C "$system/image" -xf "$system/root/terse/build/terse-client-arm64.tar"
}

# in_image PROGRAM ARGUMENT...: a program of the image as its user, with qemu, which takes the libraries from the image too.
# It is told to end after 20 seconds.
in_image() {
  local program=$1
  shift
  env -i PATH=/usr/sbin:/usr/bin:/bin timeout 20 chroot --userspec=10001:10001 "$system" qemu-aarch64 -L /image \
    "/image$program" "$@"
}

make_packages() {
  step packages_for_arm64 on_tree env CCACHE_DISABLE=1 deploy/package.sh --arm64
  cat "$work/packages_for_arm64.log"
  local package
  for package in "$system"/root/terse/build/packages/*.deb; do
    [[ "$(dpkg-deb -f "$package" Architecture)" == arm64 ]] || fail "$package is not for arm64"
    say "$(dpkg-deb -f "$package" Package) depends on $(dpkg-deb -f "$package" Depends)"
  done
  step image on_tree deploy/arm64_image.sh
  unpack_image
  step image_client in_image /usr/bin/terse-client --version
  step image_tersectl in_image /usr/bin/tersectl --version
  try_image_client
}

# It finds its libraries, reads its options, writes its state as its user, looks for its coordinator until it is told to
# end, and then ends in order. How it did is in its log: the exit status is that of `timeout`.
try_image_client() {
  local log=$work/image_run.log line
  in_image /usr/bin/terse-client --coordinator 127.0.0.1:1 --name one --state /image/state/client --trainer /bin/true \
    >"$log" 2>&1 || true
  for line in 'no coordinator answers at 127.0.0.1:1' 'the state in /image/state/client is whole'; do
    grep -q "$line" "$log" || fail "the image's client does not say '$line'" "$log"
  done
  say "the image's client runs"
}

# The build's own tests, and its client in a fleet with this machine's.
test_build() {
  step build on_tree env CCACHE_DISABLE=1 deploy/build.sh --preset arm64 --no-packages --jobs "$jobs"
  file -b "$system/root/terse/build/arm64/bin/terse-client"
  step tests on_tree ctest --preset arm64 -j "$jobs"
  grep 'tests passed' "$work/tests.log"
  make_mixed
  step same_bits of_python same_bits.py "$bin" "$mixed"
  cat "$work/same_bits.log"
  step conservation of_python conservation_test.py "$mixed"
}

main() {
  parse_arguments "$@"
  enter_namespaces "$root/tests/arm64.sh" "$@"
  terse_install_packages packaging machines
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/work.XXXXXX")
  trap leave_machine EXIT
  make_base
  make_machine
  bring_tree
  step packages install_packages
  [[ $only_packages -eq 1 ]] || test_build
  make_packages
  say "passed"
}

main "$@"
