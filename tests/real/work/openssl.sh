# SPDX-License-Identifier: MIT
# Digests, ciphers, keys, signatures, and a TLS server with its client.
set -eu
seq 1 60000 >text
openssl speed -seconds 1 -bytes 4096 sha256 >/dev/null 2>&1
for digest in md5 sha1 sha256 sha3-512 blake2b512; do openssl dgst -$digest text; done
for cipher in aes-256-cbc aes-128-ctr chacha20 camellia-128-cbc; do
	openssl enc -$cipher -pbkdf2 -iter 2000 -S 0102030405060708 -pass pass:secret -in text -out coded
	sha256sum <coded
	openssl enc -d -$cipher -pbkdf2 -iter 2000 -S 0102030405060708 -pass pass:secret -in coded | cmp - text
done
openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:wrong -in coded -out /dev/null 2>/dev/null || echo "status $?"
# A key that is known to everybody: the digest of nothing.
hex=302e020100300506032b657004220420$(printf '' | sha256sum | cut -c1-64)
perl -e "print pack q(H*), q($hex)" | openssl pkey -inform DER -out key
openssl pkey -in key -pubout -out public
openssl pkeyutl -sign -rawin -in text -inkey key | sha256sum
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa 2>/dev/null
openssl dgst -sha256 -sign rsa -out signature text
openssl rsa -in rsa -pubout -out rsa.public 2>/dev/null
openssl dgst -sha256 -verify rsa.public -signature signature text
echo changed >>text
openssl dgst -sha256 -verify rsa.public -signature signature text 2>/dev/null || echo "status $?"
openssl prime -generate -bits 256 | xargs openssl prime | sed 's/.* is/is/'
openssl req -x509 -new -key key -subj /CN=localhost -days 10 -out certificate
openssl verify -CAfile certificate certificate
mkfifo log hold
openssl s_server -accept 127.0.0.1:"$PORT" -cert certificate -key key -www <hold >log 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null || :' EXIT
exec 3>hold 4<log
while read -r line <&4; do case $line in ACCEPT*) break ;; esac; done
for version in -tls1_2 -tls1_3; do
	printf 'GET / HTTP/1.0\r\n\r\n' |
		openssl s_client -quiet $version -connect 127.0.0.1:"$PORT" -servername localhost \
			-verify_return_error -CAfile certificate 2>/dev/null |
		grep -aE '^(HTTP|New, TLS|.*Protocol)'
done
rm -f text coded key public rsa rsa.public signature certificate log hold
