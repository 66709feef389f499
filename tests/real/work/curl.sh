# SPDX-License-Identifier: MIT
# curl against Python's web server, which takes any free port.
set -eu
mkdir site
for i in 1 2 3 4 5 6; do seq "$i" $((i * 3000)) >"site/file$i"; done
mkfifo log
python=/usr/bin/python3
$python -u -m http.server --bind 127.0.0.1 --directory site 0 >log 2>/dev/null &
pid=$!
trap 'kill $pid || :' EXIT
read -r line <log
port=${line#*port }
at=http://127.0.0.1:${port%% *}
curl -sS "$at/file[1-6]" | sha256sum
curl -sS -Z --parallel-max 4 "$at/file[1-6]" -o 'copy#1' 2>/dev/null
sha256sum copy?
curl -sS -I $at/file3 | grep -i '^content'
curl -sS -o /dev/null -w '%{http_code} %{size_download}\n' $at/nowhere
curl -sS -d x=y $at/file1 | grep -i code:
curl -sS -f $at/nowhere 2>&1 || echo "status $?"
curl -sS --max-filesize 100 $at/file1 2>&1 || echo "status $?"
curl -sS "file://$PWD/site/file2" | sha256sum
curl -sS nonsense://x 2>&1 || echo "status $?"
curl -sS --http0.9 --proxy "$at" http://example.invalid/file1 | tail -n 1
rm -rf site log
