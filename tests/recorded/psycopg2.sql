-- psycopg2: psycopg2 2.9.13
-- 29 statements: 4 catalogue, 19 session, 6 data

-- [1] catalogue | simple | sent 2x | by: tpc_recover
-- result: gid text, prepared timestamp with time zone, owner name, database name
SELECT gid, prepared, owner, database FROM pg_prepared_xacts;

-- [2] catalogue | simple | sent 2x | by: register_hstore
-- result: oid oid, typarray oid
SELECT t.oid, typarray
FROM pg_type t JOIN pg_namespace ns
    ON typnamespace = ns.oid
WHERE typname = 'hstore';

-- [3] catalogue | simple | sent 4x | by: register_composite; register_composite (schema)
-- result: oid oid, typarray oid, attname name, atttypid oid
SELECT t.oid, typarray, attname, atttypid
FROM pg_type t
JOIN pg_namespace ns ON typnamespace = ns.oid
JOIN pg_attribute a ON attrelid = typrelid
WHERE typname = 'point2' AND nspname = 'public'
    AND attnum > 0 AND NOT attisdropped
ORDER BY attnum;

-- [4] catalogue | simple | sent 2x | by: register_range
-- result: rngtypid oid, rngsubtype oid, typarray oid
select rngtypid, rngsubtype, typarray
from pg_range r
join pg_type t on t.oid = rngtypid
join pg_namespace ns on ns.oid = typnamespace
where typname = 'numr' and ns.nspname = 'public';

-- [5] session | simple | sent 20x | by: first execute; execute_values; named cursor; tpc_recover; copy_expert; … (10 actions)
-- result: BEGIN
BEGIN;

-- [6] session | simple | sent 4x | by: first execute; execute after set_session
-- result: ?column? integer
select 1;

-- [7] session | simple | sent 2x | by: execute list
-- result: COMMIT
COMMIT;

-- [8] session | simple | sent 16x | by: rollback; named cursor; execute after set_session; tpc_recover; register_hstore; … (8 actions)
-- result: ROLLBACK
ROLLBACK;

-- [9] session | simple | sent 2x | by: named cursor
-- result: DECLARE CURSOR
DECLARE "named" CURSOR WITHOUT HOLD FOR select id from people;

-- [10] session | simple | sent 12x | by: named cursor
-- result: id text
FETCH FORWARD 10 FROM "named";

-- [11] session | simple | sent 2x | by: named cursor
-- result: CLOSE CURSOR
CLOSE "named";

-- [12] session | simple | sent 2x | by: named cursor
-- result: DECLARE CURSOR
DECLARE "named2" SCROLL CURSOR WITH HOLD FOR select id from people;

-- [13] session | simple | sent 2x | by: named cursor
-- result: id text
FETCH FORWARD 3 FROM "named2";

-- [14] session | simple | sent 2x | by: named cursor
-- result: MOVE n
MOVE 1 FROM "named2";

-- [15] session | simple | sent 2x | by: named cursor
-- result: CLOSE CURSOR
CLOSE "named2";

-- [16] session | simple | sent 2x | by: execute after set_session
-- result: BEGIN
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;

-- [17] session | simple | sent 2x | by: set_client_encoding
-- result: SET
SET client_encoding TO 'LATIN1';

-- [18] session | simple | sent 2x | by: autocommit set_session
-- result: SET
SET default_transaction_isolation TO 'READ COMMITTED';

-- [19] session | simple | sent 2x | by: autocommit set_session
-- result: SET
SET default_transaction_read_only TO 'off';

-- [20] session | simple | sent 2x | by: autocommit set_session
-- result: SET
SET default_transaction_deferrable TO 'off';

-- [21] session | simple | sent 2x | by: reset
-- result: DISCARD ALL
DISCARD ALL;

-- [22] session | simple | sent 2x | by: connection pool / RealDictCursor
-- result: a integer
select 1 as a;

-- [23] session | simple | sent 2x | by: replication connection
-- result: systemid text, timeline bigint, xlogpos text, dbname text
IDENTIFY_SYSTEM;

-- [24] data | simple | sent 2x | by: execute with parameters
-- result: id text, doc jsonb
select id,doc from people where id='p1' and doc @> '{}';

-- [25] data | simple | sent 2x | by: execute list
-- result: id text
select id from people where id=any(ARRAY['p1']) or id in ('p2', 'p3');

-- [26] data | simple | sent 2x | by: execute_values
-- result: INSERT n n
insert into orders(id,doc) values ('x1','{}'),('x2','{}') on conflict (id) do nothing;

-- [27] data | simple | sent 2x | by: execute_batch
-- result: INSERT n n
insert into orders(id,doc) values ('x3','{}') on conflict (id) do nothing;insert into orders(id,doc) values ('x4','{}') on conflict (id) do nothing;

-- [28] data | simple | sent 2x | by: copy_expert
-- result: COPY n
copy people to stdout;

-- [29] data | simple | sent 2x | by: copy_to
-- result: COPY n
COPY "people" TO stdout WITH DELIMITER AS '	' NULL AS '\N';
