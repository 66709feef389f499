# SPDX-License-Identifier: MIT
# $1, a compressor, with the options that follow: there and back, a damaged file, a list.
set -eu
program=$1
shift
for file in text noise zeros; do
	"$program" "$@" -c $file >packed
	sha256sum <packed
	"$program" -dc <packed | cmp - $file
done
cat text noise | "$program" "$@" -c >packed
"$program" -t packed 2>&1
head -c 20000 packed >cut
"$program" -dc <cut 2>&1 >/dev/null || echo "status $?"
rm packed cut
