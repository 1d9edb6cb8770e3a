-- node-pg: pg 8.23.1, pg-cursor, pg-query-stream
-- 10 statements: 5 session, 5 data

-- [1] session | simple | sent 1x | by: query
-- result: ?column? integer
select 1;

-- [2] session | simple | sent 1x | by: multi statement
-- result: ?column? integer
-- result: ?column? integer
select 1; select 2;

-- [3] session | simple | sent 1x | by: transaction
-- result: BEGIN
BEGIN;

-- [4] session | simple | sent 1x | by: transaction
-- result: COMMIT
COMMIT;

-- [5] session | simple | sent 1x | by: Pool connect with options
-- result: now timestamp with time zone
select now();

-- [6] data | extended | sent 1x | by: query params
-- parameters: $1 text (Parse says unspecified) = 'p1', $2 bigint (Parse says unspecified) = '3'
-- result: id text, doc jsonb
select id,doc from people where id=$1 limit $2;

-- [7] data | extended | sent 1x | by: named prepared
-- parameters: $1 text[] (Parse says unspecified) = '{"p1"}'
-- wire: named statement
-- result: id text
select id from people where id=any($1);

-- [8] data | extended | sent 1x | by: insert returning
-- parameters: $1 text (Parse says unspecified) = 'n1', $2 jsonb (Parse says unspecified) = '{"a":1}'
-- result: id text
insert into orders values($1,$2) on conflict do nothing returning id;

-- [9] data | extended | sent 1x | by: pg-cursor
-- parameters: $1 text (Parse says unspecified) = 'a'
-- wire: Execute limit 3
-- result: id text
select id from people where id>$1;

-- [10] data | extended | sent 1x | by: pg-query-stream
-- wire: Execute limit 100
-- result: id text
select id from people;
