# shellcheck shell=bash
# shellcheck disable=SC2154  # variables that the script which sources this sets, as said below
# A bare Debian in namespaces, which is gone afterwards: what tests/bare.sh and tests/wheel.sh share. Sourced after
# deploy/lib.sh, never run.
# The script that sources this sets `cache`, the folder of the bare systems, `mirror`, a Debian mirror, and `suite`; it calls
# enter_namespaces first, and traps EXIT with leave_machine once it has made `work`, a folder on a real disk.

# The first mirror in /etc/apt that has Debian itself, in either of APT's two formats.
mirror_of_apt() {
  find /etc/apt \( -name '*.sources' -o -name '*.list' \) -exec \
    sed -nE 's#^(URIs:|deb( \[[^]]*\])?) +(https?://[^ ]*/debian/?)( .*)?$#\3#p' {} + | sed -n 1p
}

# The folder in which the bare systems are kept between runs, unless another is named.
default_cache() {
  printf '%s' "${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/terse-bare"
}

# check_bare: what a bare machine needs, or out.
check_bare() {
  [[ -n "$mirror" ]] || fail "/etc/apt names no Debian mirror; name one with --mirror"
  [[ $EUID -eq 0 ]] || fail "debootstrap and namespaces need root; run it as root or through sudo"
}

# enter_namespaces SCRIPT ARGUMENT...: runs the script again with mounts that it alone sees and that go with it.
enter_namespaces() {
  [[ -z "${TERSE_BARE_INSIDE:-}" ]] || return 0
  TERSE_BARE_INSIDE=1 exec unshare --mount --pid --fork --kill-child --mount-proc "$@"
}

# Sets base to a system that has what debootstrap calls minimal, made once and never written afterwards.
make_base() {
  base=$cache/$suite
  [[ ! -d "$base" ]] || return 0
  local log=$work/debootstrap.log made
  mkdir -p "$cache"
  made=$(mktemp -d "$cache/$suite.XXXXXX")
  debootstrap --variant=minbase "$suite" "$made" "$mirror" >"$log" 2>&1 ||
    fail "debootstrap could not make a system from $mirror; check the network, or name another with --mirror" "$log"
  mv --no-target-directory "$made" "$base"
}

# make_machine: sets system to the machine's disk: the base, and above it what the machine writes itself.
make_machine() {
  system=$work/system
  mkdir -p "$work/upper" "$work/scratch" "$system"
  mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/scratch" "$system"
  mount -t proc proc "$system/proc"
  mount --rbind --make-rslave /dev "$system/dev"
  cp /etc/resolv.conf "$system/etc/resolv.conf"
  printf 'deb %s %s main\n' "$mirror" "$suite" >"$system/etc/apt/sources.list"
}

# on_machine FOLDER COMMAND...: as root on the bare machine, in that folder, with what a root shell has in its environment.
on_machine() {
  local folder=$1
  shift
  # shellcheck disable=SC2016  # expanded on the machine
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    chroot "$system" sh -c 'cd "$1" && shift && exec "$@"' -- "$folder" "$@"
}

# Sets pip_settings to what pip is told on this machine, as in a closed network, and brings its certificates to that one.
share_pip_settings() {
  local name
  pip_settings=()
  for name in "${!PIP_@}"; do
    [[ "$name" == PIP_CERT ]] || pip_settings+=("$name=${!name}")
  done
  [[ -n "${PIP_CERT:-}" ]] || return 0
  install -m 0644 "$PIP_CERT" "$system/root/pip.crt"
  pip_settings+=(PIP_CERT=/root/pip.crt)
}

# The folder is removed whether or not the machine's disk comes off: its mounts go with the namespace, and what is
# mounted below the folder is on other file systems, which rm does not enter.
leave_machine() {
  if [[ -n "${system:-}" ]] && ! umount --recursive --lazy "$system"; then
    echo "$TERSE_PROGRAM: $system could not be unmounted; it goes with this script's namespace" >&2
  fi
  rm -rf --one-file-system "$work"
}
