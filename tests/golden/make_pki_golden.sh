#!/usr/bin/env bash
# Writes pki_*.pem with OpenSSL's command line, from docs/SECURITY.md and not from the C++ code. Their keys are thrown away,
# so every call makes others. Run it in this directory.
set -euo pipefail
exec </dev/null

usage() {
  cat <<'USAGE'
usage: make_pki_golden.sh [--help]

Writes pki_authority.pem, pki_certificate.pem, pki_request.pem and pki_crl.pem into the current directory. Needs openssl.
USAGE
}

# Writes the settings with which `openssl ca` makes a revocation list of one serial number.
write_settings() {
  local work=$1
  : >"$work/index.txt"
  echo 01 >"$work/number"
  cat >"$work/ca.cnf" <<SETTINGS
[ca]
default_ca = golden
[golden]
database = $work/index.txt
crlnumber = $work/number
certificate = pki_authority.pem
private_key = $work/ca.key
default_md = sha256
default_crl_days = 36500
SETTINGS
}

make_authority() {
  openssl req -new -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1/ca.key" -days 36500 -sha256 \
    -subj '/O=Terse/CN=terse authority golden' -addext 'basicConstraints=critical,CA:TRUE,pathlen:0' \
    -addext 'keyUsage=critical,keyCertSign,cRLSign' -out pki_authority.pem
}

make_request() {
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1/node.key" -sha256 \
    -subj '/O=Terse/CN=terse coordinator golden' \
    -addext 'subjectAltName=URI:terse:coordinator:golden,DNS:fleet.example,IP:192.0.2.7,IP:2001:db8::7' \
    -out pki_request.pem
}

make_certificate() {
  openssl x509 -req -in pki_request.pem -CA pki_authority.pem -CAkey "$1/ca.key" -days 36500 -sha256 \
    -set_serial 0x0a1b2c3d4e5f60718293a4b5c6d7e8f9 -out pki_certificate.pem -extfile - <<'EXTENSIONS'
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth
subjectAltName=URI:terse:coordinator:golden,DNS:fleet.example,IP:192.0.2.7,IP:2001:db8::7
EXTENSIONS
}

make_list() {
  write_settings "$1"
  openssl ca -config "$1/ca.cnf" -revoke pki_certificate.pem
  openssl ca -config "$1/ca.cnf" -gencrl -out pki_crl.pem
}

main() {
  if [[ $# -gt 0 ]]; then
    usage
    [[ "$1" == -h || "$1" == --help ]] && exit 0
    exit 2
  fi
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  make_authority "$work"
  make_request "$work"
  make_certificate "$work"
  make_list "$work"
}

main "$@"
