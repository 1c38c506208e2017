#!/usr/bin/env bash
# Formatting by clang-format and findings of clang-tidy, over the whole tree. Ends with 0 when there is nothing to say.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=tests/lint.sh
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"

# Checks that .clang-tidy leaves out because of the time they take.
readonly DEEP_CHECKS='clang-analyzer-*,bugprone-reserved-identifier,bugprone-stringview-nullptr,performance-unnecessary-value-param'

usage() {
  cat <<'USAGE'
usage: tests/lint.sh [--format | --tidy] [--deep] [--only REGEX] [--jobs N] [--times] [--help]

Checks that every .cc and .h is formatted (.clang-format), then examines every source and header with clang-tidy
(.clang-tidy), for which it configures the preset `tidy` and builds nothing. Installs what is missing. A finding is
mended, silenced where it stands by `NOLINT(check): reason`, or its check is switched off in .clang-tidy with the reason.

  --format       formatting only: seconds
  --tidy         clang-tidy only: minutes, less when little has changed since it last found nothing (~/.cache/terse-tidy)
  --deep         clang-tidy also with the checks that take long: the static analyzer and others
  --only REGEX   clang-tidy only for units with a source that matches; the formatting of all
  --jobs N       sources at a time (default: the processors)
  --times        say what each unit took
USAGE
}

parse_arguments() {
  format=1 tidy=1 options=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --format) tidy=0; shift ;;
      --tidy) format=0; shift ;;
      --deep) options+=("--checks=$DEEP_CHECKS"); shift ;;
      --only | --jobs) options+=("$1=$(value_of "$@")"); shift 2 ;;
      --times) options+=(--times); shift ;;
      *) fail "unknown argument '$1'; see tests/lint.sh --help" ;;
    esac
  done
  [[ $((format + tidy)) -gt 0 ]] || fail "--format and --tidy exclude each other; without them both are done"
}

# The names of all sources and headers, tracked or new, each ended by a zero byte.
all_sources() {
  git ls-files -z --cached --others --exclude-standard -- '*.cc' '*.h' | sort -zu | while IFS= read -r -d '' file; do
    [[ ! -f "$file" ]] || printf '%s\0' "$file"
  done
}

check_format() {
  [[ -n "$(all_sources | tr -d '\0' | head -c 1)" ]] || fail "$root is no git checkout, which is where the sources are listed"
  all_sources | xargs -0 clang-format-14 --dry-run -Werror ||
    fail "the files above are not formatted; clang-format-14 -i FILE formats one"
  say "$(all_sources | tr -dc '\0' | wc -c) files are formatted"
}

# Generates the sources that others include, which is all that clang-tidy needs built.
prepare_tidy() {
  local log=$root/build/tidy/configure.log
  mkdir -p "$root/build/tidy"
  cmake --preset tidy >"$log" 2>&1 || fail "the preset tidy does not configure, as above" "$log"
  ninja -C build/tidy terse_proto_sources terse_web_assets >"$log" 2>&1 || fail "generated sources failed, as above" "$log"
}

main() {
  parse_arguments "$@"
  cd "$root"
  terse_install_packages build develop bindings
  if [[ $format -eq 1 ]]; then check_format; fi
  [[ $tidy -eq 1 ]] || return 0
  prepare_tidy
  tests/lint/tidy.py build/tidy "${options[@]}" || fail "clang-tidy has findings, as above; see tests/lint.sh --help"
}

main "$@"
