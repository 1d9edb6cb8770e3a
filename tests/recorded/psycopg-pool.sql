-- psycopg-pool: psycopg_pool 3.3.3
-- 4 statements: 4 session

-- [1] session | simple | sent 1x | by: connection() with check
-- result: I
-- (empty statement)

-- [2] session | simple | sent 1x | by: connection() with check
-- result: BEGIN
BEGIN;

-- [3] session | simple | sent 1x | by: connection() with check
-- result: ?column? integer
select 1;

-- [4] session | simple | sent 1x | by: connection() with check
-- result: COMMIT
COMMIT;
