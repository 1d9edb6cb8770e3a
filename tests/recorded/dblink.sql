-- dblink: dblink of PostgreSQL 16.13
-- 7 statements: 6 session, 1 data

-- [1] session | simple | sent 1x | by: dblink_get_pkey, dblink_build_sql_insert, dblink_open
-- result: BEGIN
BEGIN;

-- [2] session | simple | sent 1x | by: dblink_get_pkey, dblink_build_sql_insert, dblink_open
-- result: DECLARE CURSOR
DECLARE k CURSOR FOR select id from people;

-- [3] session | simple | sent 1x | by: dblink_get_pkey, dblink_build_sql_insert, dblink_open
-- result: id text
FETCH 3 FROM k;

-- [4] session | simple | sent 1x | by: dblink_get_pkey, dblink_build_sql_insert, dblink_open
-- result: CLOSE CURSOR
CLOSE k;

-- [5] session | simple | sent 1x | by: dblink_get_pkey, dblink_build_sql_insert, dblink_open
-- result: COMMIT
COMMIT;

-- [6] session | simple | sent 1x | by: dblink_get_pkey, dblink_build_sql_insert, dblink_open
-- result: ?column? integer
select 1;

-- [7] data | simple | sent 1x | by: dblink()
-- result: id text
select id from people limit 2;
