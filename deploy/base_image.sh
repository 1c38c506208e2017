#!/usr/bin/env bash
# Makes the Dockerfile's base image on this machine, for places where no image registry can be reached.
set -euo pipefail

readonly IMAGE_DEFAULT=debian:bookworm-slim
readonly MIRROR_DEFAULT=http://deb.debian.org/debian

usage() {
  cat <<USAGE
usage: deploy/base_image.sh [--image NAME:TAG] [--mirror URL] [--apt-conf FILE] [--force] [--help]

Bootstraps a minimal Debian 12 with debootstrap and imports it into Docker, so that 'docker build' finds its base image
without a registry. Needs root, Docker and a Debian mirror.

  --image NAME:TAG   name of the image (default: $IMAGE_DEFAULT, the Dockerfile's own default)
  --mirror URL       Debian mirror (default: $MIRROR_DEFAULT); security updates come from URL-security
  --apt-conf FILE    an apt configuration file to put into the image (a proxy, for example)
  --force            make it again although Docker already has an image of that name
USAGE
}

fail() {
  printf 'deploy/base_image.sh: %s\n' "$1" >&2
  exit 1
}

value_of() {
  [[ $# -ge 2 && -n "$2" ]] || fail "$1 needs a value; see deploy/base_image.sh --help"
  printf '%s' "$2"
}

parse_arguments() {
  image=$IMAGE_DEFAULT mirror=$MIRROR_DEFAULT apt_conf='' force=0
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --force) force=1; shift ;;
      --image) image=$(value_of "$@"); shift 2 ;;
      --mirror) mirror=$(value_of "$@"); shift 2 ;;
      --apt-conf) apt_conf=$(value_of "$@"); shift 2 ;;
      *) fail "unknown argument '$1'; see deploy/base_image.sh --help" ;;
    esac
  done
}

check_tools() {
  [[ $EUID -eq 0 ]] || fail "debootstrap needs root; run it as root or through sudo"
  command -v debootstrap >/dev/null || fail "debootstrap is missing; run: apt-get install debootstrap"
  docker info >/dev/null 2>&1 || fail "no Docker Engine answers; start it (systemctl start docker) and try again"
  [[ -z "$apt_conf" || -r "$apt_conf" ]] || fail "--apt-conf: cannot read '$apt_conf'"
}

# Writes the settings of debian:bookworm-slim: no documentation, no package caches, no recommended packages, no syncs
# while packages are unpacked.
write_configuration() {
  local root=$1
  cat >"$root/etc/dpkg/dpkg.cfg.d/slim" <<'CONF'
path-exclude /usr/share/doc/*
path-exclude /usr/share/man/*
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-include /usr/share/doc/*/copyright
force-unsafe-io
CONF
  cat >"$root/etc/apt/apt.conf.d/99slim" <<'CONF'
APT::Install-Recommends "false";
Acquire::Languages "none";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
CONF
  cat >"$root/etc/apt/sources.list" <<CONF
deb $mirror bookworm main
deb $mirror bookworm-updates main
deb ${mirror%/}-security bookworm-security main
CONF
  [[ -z "$apt_conf" ]] || install -m 644 "$apt_conf" "$root/etc/apt/apt.conf.d/98local"
}

strip_tree() {
  local root=$1
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/tmp/* \
    "$root"/usr/share/man/* "$root"/usr/share/info/* "$root"/usr/share/locale/*
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  rm -f "$root/etc/resolv.conf" "$root/etc/hostname"
}

main() {
  parse_arguments "$@"
  check_tools
  if [[ $force -eq 0 ]] && docker image inspect "$image" >/dev/null 2>&1; then
    echo "base image: $image is already there"
    return 0
  fi
  work=$(mktemp -d -t terse-base.XXXXXX)
  trap 'rm -rf --one-file-system "$work"' EXIT
  echo "base image: bootstrapping Debian 12 from $mirror"
  debootstrap --variant=minbase bookworm "$work/root" "$mirror" >"$work/log" 2>&1 </dev/null || {
    tail -n 20 "$work/log" >&2
    fail "debootstrap failed with the lines above; check the mirror $mirror"
  }
  write_configuration "$work/root"
  strip_tree "$work/root"
  tar -C "$work/root" --numeric-owner -c . | docker import --change 'CMD ["bash"]' - "$image" >/dev/null
  echo "base image: $image, $(docker image inspect --format '{{.Size}}' "$image" | awk '{printf "%.0f MB", $1 / 1e6}')"
}

main "$@"
