# SPDX-License-Identifier: MIT
# tar, its compressors in pipes, and cpio-like corners: links, sparse files, updates, exclusions.
set -eu
mkdir -p tree/deep/er tree/empty
seq 1 30000 >tree/numbers
ln -s numbers tree/symbolic
ln tree/numbers tree/hard
head -c 3000 /dev/zero | tr '\0' x >tree/deep/x
truncate -s 2M tree/sparse
echo end >>tree/sparse
i=0
while [ $i -lt 300 ]; do echo "$i" >"tree/deep/er/file$i"; i=$((i + 1)); done
options='--sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner'
for how in --gzip --bzip2 --xz --zstd; do
	# shellcheck disable=SC2086 # words
	tar $options $how -cf archive tree
	sha256sum <archive
	rm -rf copy
	mkdir copy
	tar -xf archive -C copy
	diff -r tree copy/tree
	tar -df archive | grep -v 'time differs' || :
done
# shellcheck disable=SC2086 # words
tar $options --format=pax -S --exclude='file1*' -cf archive tree
tar -tvf archive | sed -n '1,5p;$p'
tar -xOf archive tree/numbers | sha256sum
tar -tf archive | wc -l
tar --transform='s/tree/wood/' -xf archive tree/deep/x && sha256sum wood/deep/x
head -c 5000 archive >cut
tar -tf cut 2>&1 >/dev/null || echo "status $?"
rm -rf tree copy wood archive cut
