#!/usr/bin/env bash
# Makes the client's container image for arm64 on a machine of another kind. Nothing of arm64 is executed on the way.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
readonly here root
readonly TERSE_PROGRAM=deploy/arm64_image.sh
# shellcheck source=deploy/packages.sh
source "$here/packages.sh"
# shellcheck source=deploy/lib.sh
source "$here/lib.sh"

usage() {
  cat <<'USAGE'
usage: deploy/arm64_image.sh [--packages DIR] [--out FILE] [--tag NAME:TAG] [--mirror URL] [--no-packages] [--help]

Unpacks terse-client and tersectl for arm64 with the Debian packages that they need into a file system, without shells or
package managers being run, and makes a tar archive of it. Its user is `terse`, 10001, and its state belongs in /state.

  --packages DIR  packages of `deploy/package.sh --arm64` (default: build/packages)
  --out FILE      the archive (default: build/terse-client-arm64.tar); on the device:
                  docker import --change 'USER terse' --change 'ENTRYPOINT ["terse-client"]' FILE terse-client:arm64
  --tag NAME:TAG  imports it into this machine's Docker as an image of that name, to be pushed to a registry
  --mirror URL    Debian mirror (default: http://deb.debian.org/debian)
  --no-packages   do not touch this machine's packages
USAGE
}

parse_arguments() {
  packages=$root/build/packages out=$root/build/terse-client-arm64.tar tag='' install=1
  mirror=http://deb.debian.org/debian
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --packages) packages=$(absolute "$(value_of "$@")"); shift 2 ;;
      --out) out=$(absolute "$(value_of "$@")"); shift 2 ;;
      --tag) tag=$(value_of "$@"); shift 2 ;;
      --mirror) mirror=$(value_of "$@"); shift 2 ;;
      --no-packages) install=0; shift ;;
      *) unknown_argument "$1" ;;
    esac
  done
}

# package_of NAME: its file for arm64, the newest where there are several.
package_of() {
  local files
  files=$(find "$packages" -name "$1_*_arm64.deb" 2>/dev/null | sort -V)
  [[ -n "$files" ]] || fail "$packages has no package $1 for arm64; make it with deploy/package.sh --arm64"
  tail -n 1 <<<"$files"
}

# bring_packages FILE...: copies them, and writes the script that copies them into the new file system: apt reads packages
# that are given as files under one path outside of it and inside.
bring_packages() {
  mkdir "$work/packages"
  cp "$@" "$work/packages"
  cat >"$work/bring.sh" <<'BRING'
#!/bin/sh
set -eu
work=$(dirname "$0")
mkdir -p "$1$work"
cp -r "$work/packages" "$1$work"
BRING
  chmod +x "$work/bring.sh"
}

# Writes the script that makes what the packages' own scripts would have made (the user, its folder, the certificates of the
# authorities), and takes out what no program of the image needs.
finish_tree() {
  cat >"$work/finish.sh" <<'FINISH'
#!/bin/sh
set -eu
for file in passwd group; do
  [ -e "$1/etc/$file" ] || cp "$1/usr/share/base-passwd/$file.master" "$1/etc/$file"
done
echo 'terse:x:10001:10001::/state:/usr/sbin/nologin' >>"$1/etc/passwd"
echo 'terse:x:10001:' >>"$1/etc/group"
install -d -o 10001 -g 10001 -m 0750 "$1/state"
rm -rf "$1$(dirname "$0")"
install -d -m 1777 "$1/tmp"
cat "$1"/usr/share/ca-certificates/mozilla/*.crt >"$1/etc/ssl/certs/ca-certificates.crt"
rm -rf "$1"/usr/share/man "$1"/usr/share/locale "$1/etc/apt/sources.list" "$1/etc/hostname" "$1/etc/resolv.conf"
FINISH
  chmod +x "$work/finish.sh"
}

make_archive() {
  local client control
  client=$(package_of terse-client)
  control=$(package_of tersectl)
  bring_packages "$client" "$control"
  mkdir -p "$(dirname "$out")"
  mmdebstrap --quiet --variant=extract --architectures=arm64 --format=tar --skip=check/qemu \
    --include="$work/packages/${client##*/}" --include="$work/packages/${control##*/}" \
    --include=base-passwd,netbase,ca-certificates --setup-hook="$work/bring.sh" --extract-hook="$work/finish.sh" \
    bookworm "$out" "$mirror" >"$work/log" 2>&1 || fail "mmdebstrap failed, as above" "$work/log"
  say "$out, $(($(stat -c %s "$out") / 1000000)) MB"
}

import_image() {
  docker info >/dev/null 2>&1 || fail "no Docker Engine answers; start it (systemctl start docker), or leave --tag out"
  docker import --platform linux/arm64 --change 'USER terse' --change 'WORKDIR /state' --change 'VOLUME /state' \
    --change 'ENTRYPOINT ["terse-client"]' "$out" "$tag" >/dev/null
  say "image $tag for linux/arm64"
}

main() {
  parse_arguments "$@"
  [[ $EUID -eq 0 ]] || fail "the file system belongs to root; run it as root or through sudo"
  [[ $install -eq 0 ]] || terse_install_packages packaging machines
  work=$(mktemp -d -t terse-arm64-image.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  finish_tree
  make_archive
  [[ -z "$tag" ]] || import_image
}

main "$@"
