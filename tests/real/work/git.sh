# SPDX-License-Identifier: MIT
# Make a repository with fixed dates, merge, pack, clone, look at it.
set -eu
export HOME="$PWD" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
git -c init.defaultBranch=main init -q one
cd one
git config pack.threads 1
git config gc.auto 0
i=0
while [ $i -lt 12 ]; do
	seq $i $((i + 200)) >"file$((i % 4))"
	echo "line $i" >>log
	git add .
	git commit -q -m "commit $i"
	i=$((i + 1))
done
git checkout -q -b side HEAD~3
echo side >side
git add side
git commit -q -m side
git checkout -q main
git merge -q --no-edit side
git tag -a -m tagged v1
git gc -q
git fsck --full
cd ..
git clone -q one two 2>&1
cd two
git log --graph --oneline --stat | cat
git diff HEAD~5 HEAD | sha256sum
git blame -s log
git grep -n 'line 1' HEAD
git rebase -q --onto HEAD~2 HEAD~1 >/dev/null 2>&1 || echo "rebase said $?"
git show --stat v1
git rev-list --all | wc -l
git archive HEAD | sha256sum
git checkout nowhere || echo "status $?"
cd ..
rm -rf one two
