# SPDX-License-Identifier: MIT
# busybox as shell and as all the tools.
set -u
seq 1 5000 | sort -rn | awk '{ s += $1 } END { print s }'
for i in 1 2 3 4; do
	seq 1 $((i * 100)) | sed -n '/7$/p' | tr '0-9' 'a-j' | md5sum
done
mkdir -p d/e
seq 1 20000 >d/numbers
cp d/numbers d/e/copy
gzip -c d/numbers | zcat | sha256sum
bzip2 -c d/numbers | bunzip2 -c | cksum
tar cf - d | tar tf - | sort
find d -type f | xargs -n 1 wc -l
diff d/numbers d/e/copy && echo same
echo x >>d/e/copy
diff d/numbers d/e/copy || echo "status $?"
grep -c '9.*9' d/numbers
(exit 3) || echo "subshell $?"
trap 'echo at exit' EXIT
sleep 0 & wait $!
echo 'scale=10; 2^0.5' | sed 's/2/3/' | od -c | head -n 2
printf '%s\n' b a c | sort | uniq -c
dd if=/dev/zero bs=1k count=200 2>/dev/null | xxd | tail -n 1
echo '6 7 * p' | dc
case abc in a*) echo matched ;; esac
rm -r d
exit 9
