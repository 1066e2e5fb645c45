#!/bin/sh
# Certificates to try the examples of TLS with, of an authority of their own: in /etc/weir, where the examples read them, or in another
# folder. What is there already is written over. Needs OpenSSL 3.
#
#   sh examples/certificates.sh [folder]
set -eu
umask 077
folder=${1:-/etc/weir}
mkdir -p "$folder"
cd "$folder"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/index"
cat >"$work/openssl.cnf" <<END
[req]
distinguished_name = name
[name]
[ca]
default_ca = authority
[authority]
database = $work/index
default_md = sha256
END

# make NAME EXTENSION [OPTION...]: NAME.pem and NAME.key, good for a year
make() {
  name=$1
  extension=$2
  shift 2
  openssl req -config "$work/openssl.cnf" -x509 -noenc -days 365 -subj "/CN=$name" -addext "$extension" \
    -keyout "$name.key" -out "$name.pem" "$@" 2>"$work/said" || { cat "$work/said" >&2; exit 1; }
}
ec='-newkey ec -pkeyopt ec_paramgen_curve:P-256'
issued='-CA authority.pem -CAkey authority.key'

make authority basicConstraints=critical,CA:TRUE $ec
openssl ca -config "$work/openssl.cnf" -gencrl -crldays 365 -cert authority.pem -keyfile authority.key -out revoked.crl 2>/dev/null
for site in shop news; do
  make $site.example.com subjectAltName=DNS:$site.example.com $ec $issued
done
make shop-ecdsa subjectAltName=DNS:shop.example.com $ec $issued
make shop-rsa subjectAltName=DNS:shop.example.com -newkey rsa:2048 $issued
make tenants 'subjectAltName=DNS:*.tenants.example.com' $ec $issued
make nobody subjectAltName=DNS:nobody.example.com $ec $issued
make api subjectAltName=DNS:api.example.com $ec $issued
make alice subjectAltName=URI:spiffe://example.com/alice $ec $issued
for side in near far; do
  make $side subjectAltName=DNS:$side.internal.example $ec $issued
done
