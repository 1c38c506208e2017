#!/bin/sh
# terse-link: gives the container that it runs in a link of some class, then runs a command as the user terse. For the
# simulated fleet (deploy/compose/fleet.yml): needs root and NET_ADMIN at the start, and gives both up.
set -eu

usage() {
  cat <<'USAGE'
usage: terse-link COMMAND [ARGUMENT...]

Shapes the link towards $LINK_TO (default: coordinator) and runs COMMAND as the user terse, without capabilities.

  LINK    class of this container's link; without it, one of $LINKS, by the container's address
  LINKS   classes of the fleet, separated by spaces (default: "fast 4g 3g flaky")
  RELAYS  addresses of relays (HOST:PORT), separated by spaces. COMMAND gets them as $COORDINATORS, separated by commas and
          beginning with another one in each container, by its address: the first is the container's own relay

  class   up          down        lost packets, each way
  fast    -           -           -
  4g      10 Mbit/s   30 Mbit/s   0.5%
  3g      1 Mbit/s    3 Mbit/s    1%
  flaky   2 Mbit/s    4 Mbit/s    3%, and nothing at all for 5 s of every minute
USAGE
}

fail() {
  printf 'terse-link: %s\n' "$1" >&2
  exit 1
}

# rows CLASS: up and down in kbit/s, loss.
rates_of() {
  case "$1" in
    fast) echo '0 0 0' ;;
    4g) echo '10000 30000 0.005' ;;
    3g) echo '1000 3000 0.01' ;;
    flaky) echo '2000 4000 0.03' ;;
    *) fail "no class '$1'; see terse-link --help" ;;
  esac
}

# The device and the own address towards the host $1, which may not be up yet.
find_link() {
  peer=''
  for _ in $(seq 150); do
    peer=$(getent ahostsv4 "$1" | awk 'NR == 1 {print $1}')
    [ -z "$peer" ] || break
    sleep 0.2
  done
  [ -n "$peer" ] || fail "nobody here knows a host '$1'; name it with LINK_TO"
  route=$(ip -o route get "$peer") || fail "there is no way to '$1' ($peer)"
  device=$(echo "$route" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
  address=$(echo "$route" | sed -n 's/.* src \([^ ]*\).*/\1/p')
}

# Containers of a fleet have addresses one after the other, so that each class has about as many.
class_by_address() {
  # shellcheck disable=SC2086  # a list
  set -- ${LINKS:-fast 4g 3g flaky}
  shift $((${address##*.} % $#))
  echo "$1"
}

# relays_by_address RELAY...: all of them with commas between them, beginning where the address says.
relays_by_address() {
  for _ in $(seq $((${address##*.} % $#))); do
    first=$1
    shift
    set -- "$@" "$first"
  done
  echo "$*" | tr ' ' ','
}

lose() {
  iptables -A INPUT -i "$device" -m statistic --mode random --probability "$1" -j DROP
  iptables -A OUTPUT -o "$device" -m statistic --mode random --probability "$1" -j DROP
}

# The kernel drops what comes faster, as a policer does; TCP slows down.
limit() {
  tc qdisc replace dev "$device" root tbf rate "$1kbit" burst 16kb latency 400ms
  iptables -A INPUT -i "$device" -m hashlimit --hashlimit-name down --hashlimit-above "$(($2 / 8))kb/s" -j DROP
}

go_away_at_times() {
  while sleep 55; do
    iptables -I INPUT -i "$device" -j DROP
    iptables -I OUTPUT -o "$device" -j DROP
    sleep 5
    iptables -D INPUT -i "$device" -j DROP
    iptables -D OUTPUT -o "$device" -j DROP
  done
}

case "${1:---help}" in
  -h | --help) usage; exit 0 ;;
esac
find_link "${LINK_TO:-coordinator}"
class=${LINK:-$(class_by_address)}
if [ -n "${RELAYS:-}" ]; then
  # shellcheck disable=SC2086  # a list
  COORDINATORS=$(relays_by_address $RELAYS)
  export COORDINATORS
  echo "terse-link: the relays of $address: $COORDINATORS" >&2
fi
rates=$(rates_of "$class")
# shellcheck disable=SC2086  # three words
set -- $rates "$@"
up=$1 down=$2 loss=$3
shift 3
[ "$up" = 0 ] || limit "$up" "$down"
[ "$loss" = 0 ] || lose "$loss"
[ "$class" != flaky ] || go_away_at_times &
echo "terse-link: $device, $address: class $class" >&2
install -d -o terse -g terse -m 0700 /state
exec setpriv --reuid terse --regid terse --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
