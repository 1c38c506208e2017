#!/usr/bin/env bash
# The Debian 12 packages that Terse needs, in one place: the build, its tests, and the container image's run-time
# libraries. Run it, or source it and call terse_install_packages.
set -euo pipefail

# Compilers, tools and libraries that configure and build the programs (preset `programs`), and nothing else: the
# first command of the README installs these. tests/bare.sh tries the sets on a machine that has nothing else.
TERSE_BUILD_TOOLS=(g++ cmake ninja-build ccache mold pkg-config git ca-certificates protobuf-compiler protobuf-compiler-grpc)
TERSE_BUILD_LIBRARIES=(libgrpc++-dev libprotobuf-dev libabsl-dev libsqlite3-dev libxxhash-dev libhwy-dev libssl-dev zlib1g-dev
  libboost-dev prometheus-cpp-dev libsystemd-dev libseccomp-dev libutfcpp-dev libspdlog-dev
  libcurl4-openssl-dev)
# Debian has one package of these for machines of every kind, or lets only one be installed (libpq-dev, whose headers are
# the same for all).
TERSE_BUILD_HEADERS=(libjs-chart.js libcli11-dev libtoml11-dev nlohmann-json3-dev libpq-dev)
# libopenblas0-openmp: the reference BLAS that libtorch-dev brings by default is about 2.4 times slower.
TERSE_LEARNING_LIBRARIES=(libtorch-dev libopenblas0-openmp libpng-dev libturbojpeg0-dev)
TERSE_BUILD_PACKAGES=("${TERSE_BUILD_TOOLS[@]}" "${TERSE_BUILD_LIBRARIES[@]}" "${TERSE_BUILD_HEADERS[@]}"
  "${TERSE_LEARNING_LIBRARIES[@]}")
# Libraries of the tests and benchmarks, the compiler of the fuzzers, and the tools of tests/lint.sh: every other preset
# builds with `build` and these.
TERSE_TEST_LIBRARIES=(libgtest-dev libgmock-dev libcpp-httplib-dev)
TERSE_DEVELOP_PACKAGES=("${TERSE_TEST_LIBRARIES[@]}" libbenchmark-dev clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14
  python3)
# The preset arm64 is built with the same, the libraries being those of arm64, and its tests run with qemu.
TERSE_ARM64_LIBRARIES=("${TERSE_BUILD_LIBRARIES[@]}" "${TERSE_TEST_LIBRARIES[@]}" libpq5)
TERSE_ARM64_PACKAGES=("${TERSE_BUILD_TOOLS[@]}" "${TERSE_BUILD_HEADERS[@]}" g++-aarch64-linux-gnu qemu-user python3
  "${TERSE_ARM64_LIBRARIES[@]/%/:arm64}")
# What Python's extension terse._codecs is built with, beside nanobind (below): the presets release and dev and the tools of
# tests/lint.sh need it.
TERSE_BINDINGS_PACKAGES=(python3 python3-dev python3-venv)
# The binding library of that extension is not in Debian 12: the wheel of PyPI, by its hash, unpacked where CMake looks.
readonly TERSE_NANOBIND=3.1.0
readonly TERSE_NANOBIND_HASH=sha256:96984dbe8154ffb86e653b1b60aaeed6985c710c5e75ad0279eb87943c66292d
readonly TERSE_NANOBIND_FOLDER=/usr/local/share/nanobind
# Programs that the tests run with: an independent reader of every file that Terse writes, two hosts with a bad wire
# between them, a browser for the dashboard, a reader of metrics, what reads the manual and the completions, what executes
# notebooks, a database server, and the bare machine of tests/bare.sh.
TERSE_TEST_PACKAGES=(python3 python3-numpy python3-torch sqlite3 postgresql-15 openssl iproute2
  iptables groff-base zsh dpkg-dev file systemd chromium chromium-driver python3-selenium python3-prometheus-client
  python3-nbclient python3-ipykernel debootstrap)
# python/examples/run.sh installs and runs the package for Python with these, beside `build`.
TERSE_PYTHON_PACKAGES=(python3 python3-dev python3-venv python3-numpy python3-torch)
# bench/plot_*.py draw with these.
TERSE_BENCH_PACKAGES=(python3 python3-matplotlib)
# deploy/package.sh makes the Debian packages with these.
TERSE_PACKAGING_PACKAGES=(dpkg-dev file python3)
# deploy/arm64_image.sh and the tests that need a bare machine make its system with these, and boot it.
TERSE_MACHINES_PACKAGES=(debootstrap mmdebstrap systemd-container)
# deploy/site.sh builds the site of the documentation with these.
TERSE_SITE_PACKAGES=(mkdocs mkdocs-material python3-pymdownx python3-yaml python3-venv doxygen)
# Mermaid, which draws the site's pictures, is not in Debian 12, and Debian's npm brings 400 packages. The wheel mermaidx of
# PyPI, by its hash, has the file dist/mermaid.min.js of npm's mermaid 11.16.0, byte for byte.
readonly TERSE_MERMAID=11.16.0
readonly TERSE_MERMAIDX=0.10.1
readonly TERSE_MERMAIDX_HASH=sha256:aa2e44648a96629df21acab3cac0ee2d6caca044be72898819d09736ea2f160e
readonly TERSE_MERMAID_FOLDER=/usr/local/share/mermaid-$TERSE_MERMAID
# tersectl needs these to run; the other programs need the list below. The container images have nothing else.
TERSE_TERSECTL_PACKAGES=(libgrpc++1.51 libprotobuf32 libabsl20220623 libsqlite3-0 libssl3 libcurl4)
TERSE_RUNTIME_PACKAGES=(
  "${TERSE_TERSECTL_PACKAGES[@]}" libtorch1.13 libopenblas0-openmp libprometheus-cpp-core1.0 libxxhash0 libhwy1
  libspdlog1.10 libpq5 zlib1g libpng16-16 libturbojpeg0 libsystemd0 libseccomp2
)

terse_packages_usage() {
  cat <<'USAGE'
usage: deploy/packages.sh [build] [develop] [arm64] [bindings] [test] [python] [bench] [packaging] [machines] [site]
                          [runtime] [tersectl] [--print] [--help]

Installs the Debian 12 packages of the named sets that are missing (default: build), with apt-get, through sudo when
you are not root. Does nothing when all are there.

  build      compilers, tools and libraries that build the programs
  develop    libraries and compilers of the tests, the benchmarks and the fuzzers, and what tests/lint.sh checks sources
             with; they need `build` too
  arm64      what the preset arm64 is built and tested with on a machine of another kind: the cross compiler, qemu, and
             the libraries of arm64, which Debian installs beside the machine's own
  bindings   what Python's extension is built with, nanobind from PyPI among it: presets release and dev
  test       what the tests run with; tests/run.sh needs `build`, `develop`, `bindings` and `site` too
  python     what python/examples/run.sh needs beside `build`
  bench      what draws the figures of bench/RESULTS.md
  packaging  what deploy/package.sh needs beside `build`
  machines   what makes and boots bare machines, for tests/packages.sh and others, and the image of arm64
  site       what deploy/site.sh builds the documentation with, Mermaid from PyPI among it
  runtime    the libraries that the built executables need
  tersectl   those that tersectl alone needs
  --print    only list the Debian packages of the sets, one a line
USAGE
}

terse_packages_fail() {
  printf 'deploy/packages.sh: %s\n' "$1" >&2
  exit 1
}

# terse_packages_of SET...: the packages of the sets, one a line.
terse_packages_of() {
  local set
  for set in "$@"; do
    case "$set" in
      build) printf '%s\n' "${TERSE_BUILD_PACKAGES[@]}" ;;
      develop) printf '%s\n' "${TERSE_DEVELOP_PACKAGES[@]}" ;;
      arm64) printf '%s\n' "${TERSE_ARM64_PACKAGES[@]}" ;;
      bindings) printf '%s\n' "${TERSE_BINDINGS_PACKAGES[@]}" ;;
      test) printf '%s\n' "${TERSE_TEST_PACKAGES[@]}" ;;
      python) printf '%s\n' "${TERSE_PYTHON_PACKAGES[@]}" ;;
      bench) printf '%s\n' "${TERSE_BENCH_PACKAGES[@]}" ;;
      packaging) printf '%s\n' "${TERSE_PACKAGING_PACKAGES[@]}" ;;
      machines) printf '%s\n' "${TERSE_MACHINES_PACKAGES[@]}" ;;
      site) printf '%s\n' "${TERSE_SITE_PACKAGES[@]}" ;;
      runtime) printf '%s\n' "${TERSE_RUNTIME_PACKAGES[@]}" ;;
      tersectl) printf '%s\n' "${TERSE_TERSECTL_PACKAGES[@]}" ;;
      *) terse_packages_fail "unknown package set '$set'; the sets are build, develop, arm64, bindings, test, python, bench, packaging, machines, site, runtime and tersectl" ;;
    esac
  done
}

# Names of the given packages that are not installed, one a line.
terse_missing_packages() {
  local name
  for name in "$@"; do
    # shellcheck disable=SC2016  # dpkg-query expands ${Status}, not the shell
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" == installed ]] || printf '%s\n' "$name"
  done
}

terse_require_debian_12() {
  local id=unknown version=unknown pretty='this system'
  if [[ -r /etc/os-release ]]; then
    # shellcheck source=/dev/null
    id=$(. /etc/os-release && echo "${ID:-unknown}")
    # shellcheck source=/dev/null
    version=$(. /etc/os-release && echo "${VERSION_ID:-unknown}")
    # shellcheck source=/dev/null
    pretty=$(. /etc/os-release && echo "${PRETTY_NAME:-this system}")
  fi
  [[ "$id" == debian && "$version" == 12 ]] && command -v apt-get >/dev/null && return 0
  terse_packages_fail "Terse's packages are those of Debian 12 (bookworm) and this is $pretty. Install the equivalents \
of what 'deploy/packages.sh build develop bindings test --print' lists, and nanobind $TERSE_NANOBIND, then set TERSE_SKIP_PACKAGES=1; or use the Dockerfile."
}

# terse_require_root SET...: root, or a way to it, for the sets.
terse_require_root() {
  [[ $EUID -eq 0 ]] || command -v sudo >/dev/null ||
    terse_packages_fail "not root and no sudo here; as root, run: deploy/packages.sh $*"
}

# terse_as_root COMMAND...: through sudo when not root.
terse_as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

terse_apt_get() {
  terse_as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    "$@" </dev/null
}

# Lets apt-get install packages of arm64 beside the machine's own.
terse_add_arm64() {
  [[ "$(dpkg --print-architecture)" != arm64 ]] || return 0
  ! dpkg --print-foreign-architectures | grep -qx arm64 || return 0
  terse_require_root arm64
  terse_as_root dpkg --add-architecture arm64
}

# terse_say_size LOG PACKAGE...: how much comes over the network, which takes minutes without another word. apt-get, which is
# told not to go on, always ends with an error here; without its figures the line has none.
terse_say_size() {
  local log=$1 sizes
  shift
  sizes=$(LC_ALL=C apt-get install --assume-no -o Debug::NoLocking=1 --no-install-recommends "$@" 2>/dev/null </dev/null |
    sed -nE 's|^Need to get ([^/ ]+ [kMG]?B).*|\1 to download, |p
      s|^After this operation, (.*) of additional disk space will be used\.|\1 more on the disk; |p' | tr -d '\n') || true
  echo "packages: ${sizes}this takes some minutes (log: $log)" >&2
}

# Refreshes the package lists only when they do not know all the packages, or when an installation failed with them.
terse_apt_install() {
  local log=$1
  shift
  if ! apt-cache show --no-all-versions "$@" >/dev/null 2>&1; then
    terse_apt_get update >>"$log" 2>&1 || return 1
    terse_say_size "$log" "$@"
    terse_apt_get install --no-install-recommends "$@" >>"$log" 2>&1
    return
  fi
  terse_say_size "$log" "$@"
  terse_apt_get install --no-install-recommends "$@" >>"$log" 2>&1 && return 0
  { terse_apt_get update && terse_apt_get install --no-install-recommends "$@"; } >>"$log" 2>&1
}

# terse_install_wheel SET NAME VERSION HASH FOLDER FOR: installs FOLDER of the wheel as FOR. pip is that of a virtual
# environment, because Debian's own writes nothing but Debian's packages.
terse_install_wheel() {
  local set=$1 name=$2 version=$3 hash=$4 folder=$5 target=$6 work
  terse_require_root "$set"
  work=$(mktemp -d -t "terse-$name.XXXXXX")
  echo "packages: installing $name $version from PyPI" >&2
  echo "$name==$version --hash=$hash" >"$work/wanted"
  if ! {
    /usr/bin/python3 -m venv "$work/venv" &&
      "$work/venv/bin/pip" download --quiet --no-deps --require-hashes --dest "$work" --requirement "$work/wanted" &&
      /usr/bin/python3 -m zipfile --extract "$work/$name"-*.whl "$work/unpacked" &&
      terse_as_root rm -rf "$target" &&
      terse_as_root cp -r "$work/unpacked/$folder" "$target"
  } >"$work/log" 2>&1 </dev/null; then
    tail -n 20 "$work/log" >&2
    terse_packages_fail "pip could not bring $name $version (log: $work/log); check the network and pip's settings, then \
run it again"
  fi
  rm -rf "$work"
}

# Installs nanobind unless it is there in this version.
terse_install_nanobind() {
  grep -qs "^set(PACKAGE_VERSION \"$TERSE_NANOBIND\")" "$TERSE_NANOBIND_FOLDER/cmake/nanobind-config-version.cmake" ||
    terse_install_wheel bindings nanobind "$TERSE_NANOBIND" "$TERSE_NANOBIND_HASH" nanobind "$TERSE_NANOBIND_FOLDER"
}

# Installs Mermaid unless it is there in this version.
terse_install_mermaid() {
  [[ -r "$TERSE_MERMAID_FOLDER/mermaid.js" ]] ||
    terse_install_wheel site mermaidx "$TERSE_MERMAIDX" "$TERSE_MERMAIDX_HASH" mermaidx/assets "$TERSE_MERMAID_FOLDER"
}

# Where several BLAS libraries are installed, one of OpenBLAS must be the one that LibTorch loads.
terse_choose_openblas() {
  local arch library link current wanted
  arch=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")
  for library in libblas.so.3 liblapack.so.3; do
    link=$library-$arch
    wanted=/usr/lib/$arch/openblas-openmp/$library
    [[ -e "$wanted" ]] || continue
    current=$(update-alternatives --query "$link" 2>/dev/null | sed -n 's/^Value: //p')
    [[ "$current" != *openblas* ]] || continue
    if [[ $EUID -ne 0 ]] && ! command -v sudo >/dev/null; then
      echo "packages: $library is ${current:-unset}, which is slow; as root: update-alternatives --auto $link" >&2
      continue
    fi
    echo "packages: $library is ${current:-unset}, which is slow; choosing $wanted" >&2
    terse_as_root update-alternatives --quiet --set "$link" "$wanted"
  done
}

# terse_install_packages SET...: installs what is missing; exits with one clear line when that fails.
# TERSE_SKIP_PACKAGES=1 trusts the machine and does nothing.
terse_install_packages() {
  [[ "${TERSE_SKIP_PACKAGES:-0}" == 1 ]] && return 0
  local wanted log
  mapfile -t wanted < <(terse_packages_of "$@")
  [[ ${#wanted[@]} -gt 0 ]] || exit 1
  terse_require_debian_12
  [[ " $* " != *' arm64 '* ]] || terse_add_arm64
  mapfile -t TERSE_MISSING < <(terse_missing_packages "${wanted[@]}")
  if [[ ${#TERSE_MISSING[@]} -gt 0 ]]; then
    terse_require_root "$@"
    log=$(mktemp -t terse-packages.XXXXXX)
    echo "packages: installing ${TERSE_MISSING[*]}" >&2
    if ! terse_apt_install "$log" "${TERSE_MISSING[@]}"; then
      tail -n 20 "$log" >&2
      terse_packages_fail "apt-get could not install the packages above (log: $log); check the network and the sources \
in /etc/apt, then run it again"
    fi
    rm -f "$log"
  fi
  [[ " $* " != *' bindings '* ]] || terse_install_nanobind
  [[ " $* " != *' site '* ]] || terse_install_mermaid
  terse_choose_openblas
}

terse_packages_main() {
  local sets=() print=0 argument
  for argument in "$@"; do
    case "$argument" in
      -h | --help) terse_packages_usage && return 0 ;;
      --print) print=1 ;;
      build | develop | arm64 | bindings | test | python | bench | packaging | machines | site | runtime | tersectl) sets+=("$argument") ;;
      *) terse_packages_fail "unknown argument '$argument'; see deploy/packages.sh --help" ;;
    esac
  done
  [[ ${#sets[@]} -gt 0 ]] || sets=(build)
  if [[ $print -eq 1 ]]; then
    terse_packages_of "${sets[@]}" | sort -u
  else
    terse_install_packages "${sets[@]}"
  fi
}

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
  terse_packages_main "$@"
fi
