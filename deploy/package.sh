#!/usr/bin/env bash
# Makes Debian packages of Terse: builds, packs, and says what it made.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
readonly here root
readonly TERSE_PROGRAM=deploy/package.sh
# shellcheck source=deploy/packages.sh
source "$here/packages.sh"
# shellcheck source=deploy/lib.sh
source "$here/lib.sh"

usage() {
  cat <<'USAGE'
usage: deploy/package.sh [--arm64] [--out DIR] [--revision N] [--no-packages] [--help]

Builds the preset `programs` and packs it for Debian 12:

  terse-coordinator  the coordinator as a service, run files, rules and dashboards for Prometheus and Grafana
  terse-client       the client as a service
  terse-client-torch what trains Terse's own models
  terse-relay        the relay as a service
  terse-simulate     a large fleet in a few processes of one machine
  tersectl           the command line, with its manual and completions
  terse-authority    `tersectl pki serve` as a service
  terse-follow       `tersectl follow` as a service
  libterse-dev       headers, static libraries and the CMake package, for own models in C++

  --arm64         for Debian 12 on arm64, with the cross compiler (preset `arm64-programs`): terse-client, terse-relay,
                  tersectl, terse-authority, terse-follow and libterse-dev, which need no LibTorch
  --out DIR       where the packages go (default: build/packages)
  --revision N    the packages' revision, behind the version (default: 1)
  --no-packages   do not touch this machine's packages
USAGE
}

parse_arguments() {
  out=$root/build/packages revision=1 packages=1 preset=programs
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --arm64) preset=arm64-programs; shift ;;
      --out) out=$(value_of "$@"); shift 2 ;;
      --revision) revision=$(value_of "$@"); shift 2 ;;
      --no-packages) packages=0; shift ;;
      *) fail "unknown argument '$1'; see deploy/package.sh --help" ;;
    esac
  done
  [[ "$revision" =~ ^[1-9][0-9]*$ ]] || fail "--revision must be a positive number, not '$revision'"
  out=$(absolute "$out")
}

# The packages name Debian's LibTorch; another one has no package to name.
check_torch() {
  if grep -q '^TERSE_TORCH:PATH=.' "$root/build/$preset/CMakeCache.txt"; then
    fail "build/programs uses a LibTorch of its own, which no Debian package brings; remove build/programs and try again"
  fi
}

pack() {
  local folder=$root/build/$preset log=$root/build/$preset/package.log
  rm -rf "$folder/packages"
  # dpkg-architecture tells dpkg-shlibdeps whose libraries it looks for.
  (cd "$folder" && dpkg-architecture -a"$architecture" -f -c cpack -G DEB -D CPACK_DEBIAN_PACKAGE_RELEASE="$revision") \
    >"$log" 2>&1 </dev/null || fail "cpack failed, as above; the whole output is in $log" "$log"
  mkdir -p "$out"
  mv "$folder"/packages/*_"$architecture".deb "$out"
}

# One line a package: name, version, size, and how much is installed.
show() {
  local package
  printf '%-20s %-10s %10s %14s\n' package version 'size, kB' 'installed, kB'
  for package in "$out"/*-"$revision"_"$architecture".deb; do
    printf '%-20s %-10s %10d %14d\n' "$(dpkg-deb -f "$package" Package)" "$(dpkg-deb -f "$package" Version)" \
      $(($(stat -c %s "$package") / 1000)) "$(dpkg-deb -f "$package" Installed-Size)"
  done
  say "in $out; on the machine that is to run it: apt-get install ./terse-$([[ $preset == programs ]] && echo coordinator || echo client)_*.deb ./tersectl_*.deb"
}

main() {
  parse_arguments "$@"
  if [[ $preset == programs ]]; then
    architecture=$(dpkg --print-architecture)
    [[ $packages -eq 0 ]] || terse_install_packages build packaging
  else
    architecture=arm64
    [[ $packages -eq 0 ]] || terse_install_packages arm64 packaging
  fi
  "$here/build.sh" --preset "$preset" --no-packages
  check_torch
  pack
  show
}

main "$@"
