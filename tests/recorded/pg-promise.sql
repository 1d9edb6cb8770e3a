-- pg-promise: pg-promise 12.7.1
-- 8 statements: 7 session, 1 data

-- [1] session | simple | sent 1x | by: tx nested
-- result: BEGIN
begin;

-- [2] session | simple | sent 1x | by: tx nested
-- result: ?column? integer
select 1;

-- [3] session | simple | sent 1x | by: tx nested
-- result: SAVEPOINT
savepoint sp_1_1;

-- [4] session | simple | sent 1x | by: tx nested
-- result: ?column? integer
select 2;

-- [5] session | simple | sent 1x | by: tx nested
-- result: RELEASE
release savepoint sp_1_1;

-- [6] session | simple | sent 1x | by: tx nested
-- result: COMMIT
commit;

-- [7] session | simple | sent 1x | by: task
-- result: a integer
select 1 as a;

-- [8] data | simple | sent 1x | by: any/one
-- result: id text
select id from people where id='p1';
