# SPDX-License-Identifier: MIT
# A new PostgreSQL database under pgbench and SQL; then its server is killed, and recovers.
set -eu
for bin in /usr/lib/postgresql/*/bin; do PATH=$bin:$PATH; done
export PGHOST="$PWD" PGUSER=me PGDATABASE=postgres PGDATA="$PWD/db" PGOPTIONS='-c client_min_messages=warning'
initdb -A trust -N -U me --no-locale -E UTF8
cat >>db/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '$PWD'
fsync = off
jit = off
max_parallel_workers_per_gather = 2
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
END
server() { # starts one and waits until it serves; pg_ctl would give it a session of its own
	rm -f log
	mkfifo log
	postgres >log 2>&1 &
	pid=$!
	exec 3<log
	while read -r line <&3; do
		case $line in *'ready to accept connections'*)
			cat <&3 >/dev/null &
			return
			;;
		esac
	done
	echo 'the server did not start'
	exit 1
}
trap 'kill -QUIT $pid 2>/dev/null || :' EXIT
server
pgbench -i -q -s 1 2>/dev/null
transactions=250
load() { pgbench -n --random-seed=7 "$@" 2>&1 | grep -E 'processed|failed'; }
load -c 4 -j 2 -t "$transactions"
load -c 2 -S -M prepared -t $((transactions * 4))
sql() { psql -X -q -A "$@"; }
check() {
	sql <<-END
		select sum(abalance), count(*) from pgbench_accounts;
		select sum(bbalance) from pgbench_branches;
		select count(*), sum(delta), sum(aid) from pgbench_history;
	END
	sql -t -c 'select aid, abalance from pgbench_accounts where abalance <> 0 order by aid' | sha256sum
}
check
sql <<'END' 2>&1
create table t (id int primary key, name text, value float8, data jsonb);
insert into t select i, md5(i::text), sqrt(i), jsonb_build_object('n', i, 'list', array[i, i * 2])
	from generate_series(1, 20000) i;
create index on t (name);
create index on t using gin (data);
analyze t;
select substr(name, 1, 1) c, count(*), round(avg(value)::numeric, 4) from t group by c order by c limit 5;
select count(*) from t a join t b on a.id = b.id * 2 where a.name ~ '^[0-9]+[a-f]';
select id, sum(value) over (order by id rows 3 preceding) from t where id between 50 and 53;
select data->'list'->1 from t where data @> '{"n": 77}';
explain (costs off) select count(*) from t where value > 3;
with recursive f(a, b) as (select 0::numeric, 1::numeric union all select b, a + b from f where b < 1e60)
	select max(a) from f;
create function try(x int) returns text language plpgsql as $$
begin return 100 / x; exception when division_by_zero then return 'caught ' || sqlerrm; end $$;
select try(7), try(0);
do $$ begin for i in 1 .. 200 loop perform try(i % 3); end loop; end $$;
select count(*) filter (where try(id % 2) like 'caught%') from t where id < 1000;
select 1 / 0;
select * from missing;
begin; delete from t; savepoint s; insert into t values (1); insert into t values (1); rollback to s; rollback;
select count(*), sum(id) from t;
update t set value = -value where id % 3 = 0;
vacuum full t;
select string_agg(name, ',' order by name) from (select name from t order by value limit 3) x;
select to_tsvector('english', 'the quick brown foxes jumped') @@ to_tsquery('fox & jump');
set statement_timeout = 1; select pg_sleep(100); reset statement_timeout;
copy (select * from t order by id limit 2) to stdout;
END
sql -c "set jit = ${JIT:-off}; set jit_above_cost = 0; select sum(id * 2) from t where value > 50"
pg_dump -t t | grep -v '^--\|^\\' | sha256sum
kill -QUIT $pid
wait $pid && echo 'stopped at once'
server
check
kill -INT $pid
wait $pid && echo 'ended'
rm -rf db log
