# SPDX-License-Identifier: MIT
# rsync between directories: sender, generator and receiver are processes of their own.
set -eu
mkdir -p from/deep
i=0
while [ $i -lt 200 ]; do seq $i $((i * 20)) >"from/deep/file$i"; i=$((i + 1)); done
seq 1 50000 >from/big
ln -s big from/link
find from -exec touch -h -d @1700000000 {} +
rsync -a --stats from/ to | grep -E '^(Number of (files|created)|Total file size)'
diff -r from to
echo changed >>from/big
rm from/deep/file1*
touch -d @1700000001 from/big
# The block by block algorithm, which copies between directories do not use by themselves.
rsync -ai --no-whole-file --checksum --delete from/ to
diff -r from to
rsync -az --exclude='file2*' --link-dest="$PWD/to" from/ third
find third -type f | sort | xargs sha256sum | sha256sum
rsync -a --max-size=1k --bwlimit=0 -n -i from/ fourth | wc -l
rsync -a nowhere/ to 2>&1 | sed 's/ at .*//' || :
rm -rf from to third
