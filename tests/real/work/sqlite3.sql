-- SPDX-License-Identifier: MIT
.mode list
.bail off
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, value REAL);
CREATE INDEX t_name ON t(name);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO t SELECT i, printf('%x-%04d', i * 7919 % 997, i), i * 1.5 FROM n;
SELECT count(*), sum(value), min(name), max(name) FROM t;
SELECT substr(name, 1, 1) AS c, count(*), round(avg(value), 3) FROM t GROUP BY c ORDER BY c;
SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id * 2 WHERE a.name LIKE '3%' ORDER BY a.name LIMIT 10;
UPDATE t SET value = value + 1 WHERE id % 3 = 0;
DELETE FROM t WHERE id % 7 = 0;
BEGIN; DELETE FROM t; ROLLBACK;
SELECT count(*), sum(value) FROM t;
SELECT id, sum(value) OVER (ORDER BY id ROWS 5 PRECEDING) FROM t WHERE id BETWEEN 50 AND 60;
INSERT INTO t VALUES (1, 'duplicate', 0);
SELECT * FROM missing;
SELECT json_group_array(json_object('id', id, 'name', name)) FROM t WHERE id < 4;
CREATE TRIGGER tr AFTER DELETE ON t BEGIN UPDATE t SET value = -1 WHERE id = OLD.id + 1; END;
DELETE FROM t WHERE id IN (100, 200, 300);
SELECT count(*) FROM t WHERE value = -1;
VACUUM;
PRAGMA integrity_check;
ATTACH 'file.db' AS f;
CREATE TABLE f.copy AS SELECT * FROM t ORDER BY name;
SELECT count(*), group_concat(name, ',') FROM (SELECT name FROM f.copy ORDER BY name LIMIT 20);
WITH RECURSIVE
  xaxis(x) AS (VALUES(-2.0) UNION ALL SELECT x+0.1 FROM xaxis WHERE x<1.2),
  yaxis(y) AS (VALUES(-1.0) UNION ALL SELECT y+0.2 FROM yaxis WHERE y<1.0),
  m(iter, cx, cy, x, y) AS (
    SELECT 0, x, y, 0.0, 0.0 FROM xaxis, yaxis
    UNION ALL
    SELECT iter+1, cx, cy, x*x-y*y + cx, 2.0*x*y + cy FROM m WHERE (x*x + y*y) < 4.0 AND iter<28),
  m2(iter, cx, cy) AS (SELECT max(iter), cx, cy FROM m GROUP BY cx, cy),
  a(t) AS (SELECT group_concat(substr(' .+*#', 1+min(iter/7,4), 1), '') FROM m2 GROUP BY cy)
SELECT group_concat(rtrim(t),x'0a') FROM a;
EXPLAIN QUERY PLAN SELECT * FROM t WHERE name > 'a' ORDER BY value;
