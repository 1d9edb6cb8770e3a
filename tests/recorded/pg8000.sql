-- pg8000: pg8000 1.31.6
-- 7 statements: 1 catalogue, 3 session, 3 data

-- [1] catalogue | simple | sent 2x | by: tpc_recover
-- result: gid text
select gid FROM pg_prepared_xacts;

-- [2] session | simple | sent 2x | by: execute
-- result: BEGIN
begin transaction;

-- [3] session | simple | sent 2x | by: execute
-- result: ?column? integer
select 1;

-- [4] session | extended | sent 2x | by: list
-- result: COMMIT
commit;

-- [5] data | extended | sent 2x | by: execute params
-- parameters: $1 text (Parse says unspecified) = 'p1', $2 bigint (Parse says unspecified) = '3'
-- result: id text, doc jsonb
select id,doc from people where id=$1 limit $2;

-- [6] data | extended | sent 2x | by: list
-- parameters: $1 text[] (Parse says unspecified) = '{p1}'
-- result: id text
select id from people where id=any($1);

-- [7] data | extended | sent 4x | by: native run; native prepare; native run prepared
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: named statement
-- result: id text
select id from people where id=$1;
