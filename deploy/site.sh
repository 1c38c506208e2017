#!/usr/bin/env bash
# Builds the documentation as a site that is read with a browser, from files or from any web server. It asks nothing of
# other hosts, and once the packages are there it is built without a network.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly TERSE_PROGRAM=deploy/site.sh
# shellcheck source=deploy/packages.sh
source "$root/deploy/packages.sh"
# shellcheck source=deploy/lib.sh
source "$root/deploy/lib.sh"

usage() {
  cat <<'USAGE'
usage: deploy/site.sh [--out DIR] [--no-packages] [--help]

Builds the site of the documentation: every document of the tree, the reference of the C++ library from its headers, search
and pictures. Warnings are errors. Open DIR/index.html, or serve DIR with any web server.

  --out DIR      folder of the site, which is made anew (default: build/site)
  --no-packages  do not touch the machine's packages
USAGE
}

parse_arguments() {
  out=$root/build/site packages=1
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) usage; exit 0 ;;
      --out) out=$(absolute "$(value_of "$@")"); shift 2 ;;
      --no-packages) packages=0; shift ;;
      *) fail "unknown argument '$1'; see deploy/site.sh --help" ;;
    esac
  done
  [[ ! -e "$out" || -z "$(ls -A "$out")" || -e "$out/search/search_index.js" ]] ||
    fail "--out: '$out' is not empty and no site; name another folder"
}

main() {
  parse_arguments "$@"
  [[ $packages -eq 0 ]] || terse_install_packages site
  [[ -r "$TERSE_MERMAID_FOLDER/mermaid.js" ]] ||
    fail "no Mermaid in $TERSE_MERMAID_FOLDER; 'deploy/packages.sh site' installs it"
  /usr/bin/python3 "$root/deploy/site/build.py" "$out" "$TERSE_MERMAID_FOLDER/mermaid.js"
}

main "$@"
