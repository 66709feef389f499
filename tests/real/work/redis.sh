# SPDX-License-Identifier: MIT
# redis-server under load: pipelines, scripts, fork to save, kill and restart from its log.
set -eu
server() { # starts one and waits until it serves
	rm -f log
	mkfifo log
	redis-server - >log <<-END &
		port 0
		unixsocket $PWD/socket
		save ""
		appendonly yes
		enable-debug-command local
	END
	pid=$!
	exec 3<log
	while read -r line <&3; do
		case $line in *'eady to accept connections'*) return ;; esac
	done
	echo 'the server did not start'
	exit 1
}
cli() { redis-cli -s socket "$@"; }
load() { redis-benchmark -s socket -q "$@" >/dev/null; }
trap 'kill -9 $pid 2>/dev/null || :' EXIT

server
requests=5000
load -n "$requests" -c 20 incr counter
load -n "$requests" -c 20 -P 16 lpush list element
load -n "$requests" -c 5 --threads 2 -d 1000 set key __data__
load -n "$requests" -c 50 -P 4 -t get,set,lpop,sadd,hset,spop,zadd,lrange_100,mset
load -n 2000 -c 10 eval 'local s = 0
	for i = 1, 50 do s = s + tonumber(redis.call("incrby", KEYS[1], ARGV[1])) end
	return redis.status_reply(tostring(s))' 1 scripted 3
cli get counter
cli llen list
cli get scripted
cli flushall

seq 1 5000 | awk '{ print "set key:" $1, $1 * $1; print "zadd z", $1 * 7919 % 5003, "m" $1
	print "hset h f" $1 % 100, $1; print "sadd s" $1 % 3, $1; print "rpush l", $1 % 1000 }' |
	cli --pipe | tail -n 1
cli dbsize
cli zrangebyscore z 100 120 withscores
cli sort l limit 0 10 desc
cli hgetall h | sort | sha256sum
cli sinterstore both s0 s1
cli bitcount key:4999
cli setex gone 100 x
cli object encoding z
cli eval 'return cjson.encode({1, {a = "b"}, redis.call("get", KEYS[1])})' 1 key:77
cli eval 'return redis.call("nonsense")' 0 || echo "status $?"
cli eval 'error("raised")' 0
printf 'multi\nincr t\nincr t\nexec\nget t\nlpush t 1\ndiscard\n' | cli
cli xadd stream 1-1 a 1
cli xrange stream - +
cli geoadd places 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
cli geodist places Palermo Catania km
cli del gone
digest=$(cli debug digest)
echo "$digest"

cli save
cli debug reload
[ "$(cli debug digest)" = "$digest" ] && echo 'the same from the snapshot'
{ kill -9 $pid; wait $pid; } 2>/dev/null || echo "killed, $?"
server
[ "$(cli debug digest)" = "$digest" ] && echo 'the same from the log'
# Its parent waits for a child that rewrites the log or saves before it ends.
cli bgrewriteaof >/dev/null
cli shutdown nosave force || :
wait $pid && echo 'ended'
server
[ "$(cli debug digest)" = "$digest" ] && echo 'the same from the log again'
kill $pid
wait $pid && echo 'ended'
rm -rf log socket appendonlydir dump.rdb
