# SPDX-License-Identifier: MIT
# Small tools in pipelines, subshells, traps and background jobs.
set -u
trap 'echo at exit' EXIT
trap 'echo got a signal' USR1
seq 1 20000 | sort -R --random-source=/dev/zero | sort -n --parallel=2 | sha256sum
seq 1 5000 | awk '{ s += $1 * $1; n[$1 % 7]++ } END { print s; for (i = 0; i < 7; i++) print i, n[i] }'
seq 1 300 | sed -n '/[05]$/s/\(.\)/<\1>/gp' | tail -n 3
(cd / && pwd; exit 3) || echo "subshell $?"
seq 1 1000 | xargs -n 50 -P 2 sh -c 'echo $#' count | sort | uniq -c
for i in 1 2 3; do
	(seq $((i * 1000)) | md5sum) &
	wait $!
done
kill -USR1 $$
tar -c --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -f - -C /usr/share/doc/base-files . |
	xz -2 -T2 | xz -d | sha256sum
head -c 300000 /dev/zero | gzip -9 | od -An -tx1 | tail -n 2
printf "%s\n" b a c >copy; sort copy | diff copy - || echo "diff $?"
grep -c . /etc/passwd >/dev/null && find /usr/share/doc/base-files -type f | sort | wc -l
{ sh -c 'kill -9 $$'; } 2>/dev/null
echo "killed $?"
sh -c 'exit 200'
echo "status $?"
