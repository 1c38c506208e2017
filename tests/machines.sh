# shellcheck shell=bash
# shellcheck disable=SC2154  # `work` is set by the script that sources this
# Debian 12 machines for tests that need whole ones: systems in containers (systemd-nspawn) that are booted, each with
# services, users and, if wanted, a network of its own. Sourced, never run. The script that sources this sources
# tests/checks.sh too, sets `work`, a scratch folder on a real disk, and calls machines_shutdown before it removes that.

declare -A machine_container machine_leader

# machines_base MIRROR [DIR]: sets `base`, a bare Debian 12 that is shared and never written: DIR, or a new one.
machines_base() {
  base=${2:-}
  [[ -z "$base" ]] || return 0
  base=$work/base
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$base" "$1" \
    >"$work/debootstrap.log" 2>&1 || fail "debootstrap failed, as above; check --mirror" "$work/debootstrap.log"
}

# machines_network NAME...: a network without a way out, on which each machine has an address and knows the others by
# NAME and NAME.example. Call it before they are made.
machines_network() {
  local name number=0
  switch=terse-$$
  ip netns add "$switch"
  ip -n "$switch" link add bridge type bridge
  ip -n "$switch" link set bridge up
  for name in "$@"; do
    number=$((number + 1))
    ip netns add "$switch-$name"
    ip -n "$switch" link add "port$number" type veth peer name eth0 netns "$switch-$name"
    ip -n "$switch" link set "port$number" master bridge up
    ip -n "$switch-$name" address add "10.77.0.$number/24" dev eth0
    ip -n "$switch-$name" link set eth0 up
    ip -n "$switch-$name" link set lo up
    printf '10.77.0.%d %s %s.example\n' "$number" "$name" "$name" >>"$work/hosts"
  done
}

# machine_make NAME: its disk, `base` and what it writes itself, at $work/NAME/root.
machine_make() {
  local folder=$work/$1
  rm -rf --one-file-system "$folder"  # the disk of an earlier machine of this name
  mkdir -p "$folder/upper" "$folder/scratch" "$folder/root"
  mount -t overlay overlay -o "lowerdir=$base,upperdir=$folder/upper,workdir=$folder/scratch" "$folder/root"
  # Manuals are part of what is installed.
  rm -f "$folder"/root/etc/dpkg/dpkg.cfg.d/*
  printf '%s\n' "$1" >"$folder/root/etc/hostname"
  printf '127.0.0.1 localhost\n' >"$folder/root/etc/hosts"
  [[ ! -e "$work/hosts" ]] || cat "$work/hosts" >>"$folder/root/etc/hosts"
}

# machine_boot NAME [OPTION...]: with these options of systemd-nspawn, with the right to lock memory, which a machine
# gives and a container does not: a library of LibTorch's wants 16 KB.
machine_boot() {
  local name=$1 network=()
  shift
  [[ -z "${switch:-}" ]] || network=("--network-namespace-path=/run/netns/$switch-$name")
  (
    enter_control_group "terse-$$-$name"
    exec systemd-nspawn --capability=CAP_IPC_LOCK --register=no --keep-unit --quiet --console=pipe --boot \
      --machine="$name" --directory "$work/$name/root" "${network[@]}" "$@"
  ) >"$work/$name/boot.log" 2>&1 &
  machine_container[$name]=$!
  soon "$name boots" find_leader "$name"
  soon "its services are up" within "$name" systemctl is-active --quiet multi-user.target
}

# Machines that share a control group would stop each other's services.
enter_control_group() {
  local hierarchy
  for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    [[ -e "$hierarchy/cgroup.procs" ]] || continue
    mkdir -p "$hierarchy/$1"
    echo "$BASHPID" >"$hierarchy/$1/cgroup.procs"
  done
}

# The machine's first process: systemd-nspawn has another child before it, which only prepares the machine.
find_leader() {
  local child
  for child in $(pgrep --parent "${machine_container[$1]}"); do
    grep -qE '^NSpid:.*[[:space:]]1$' "/proc/$child/status" 2>/dev/null || continue
    machine_leader[$1]=$child
    return 0
  done
  return 1
}

# entrance NAME: sets `entry`, the command before commands that run in the machine, as root, with what a root shell has
# in its environment.
entrance() {
  entry=(nsenter --target "${machine_leader[$1]}" --mount --uts --ipc --net --pid --root --wd
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
}

# within NAME COMMAND...: in the machine.
within() {
  entrance "$1"
  "${entry[@]}" "${@:2}"
}

# machine_off NAME: in order, or by force after ten seconds.
machine_off() {
  local container=${machine_container[$1]} leader=${machine_leader[$1]:-}
  [[ -z "$leader" ]] || kill -SIGRTMIN+4 "$leader" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "$container" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL ${leader:+"$leader"} "$container" 2>/dev/null || true
}

# Everything that the functions above made goes, except the folders in `work`.
machines_shutdown() {
  local name hierarchy
  for name in "${!machine_container[@]}"; do machine_off "$name" & done
  wait
  for name in "${!machine_container[@]}"; do
    umount --lazy "$work/$name/root" 2>/dev/null || true
    for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
      find "$hierarchy/terse-$$-$name" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
  done
  machine_container=() machine_leader=()
  [[ -n "${switch:-}" ]] || return 0
  ip netns list | awk -v of="$switch" 'index($1, of) == 1 { print $1 }' | xargs -r -n 1 ip netns del
  switch=''
  rm -f "$work/hosts"
}
