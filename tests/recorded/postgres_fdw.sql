-- postgres_fdw: postgres_fdw of PostgreSQL 16.13, looping back
-- 79 statements: 7 catalogue, 41 session, 31 data

-- [1] catalogue | simple | sent 2x | by: IMPORT FOREIGN SCHEMA public; IMPORT FOREIGN SCHEMA LIMIT TO
-- result: ?column? integer
SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'public';

-- [2] catalogue | simple | sent 1x | by: IMPORT FOREIGN SCHEMA public
-- result: relname name, attname name, format_type text, attnotnull boolean, pg_get_expr text, attgenerated "char", collname name, nspname name
SELECT relname,   attname,   format_type(atttypid, atttypmod),   attnotnull,   pg_get_expr(adbin, adrelid),   attgenerated,   collname,   collnsp.nspname FROM pg_class c   JOIN pg_namespace n ON     relnamespace = n.oid   LEFT JOIN pg_attribute a ON     attrelid = c.oid AND attnum > 0       AND NOT attisdropped   LEFT JOIN pg_attrdef ad ON     adrelid = c.oid AND adnum = attnum   LEFT JOIN pg_collation coll ON     coll.oid = attcollation   LEFT JOIN pg_namespace collnsp ON     collnsp.oid = collnamespace WHERE c.relkind IN ('r','v','f','m','p')   AND n.nspname = 'public' AND NOT c.relispartition  ORDER BY c.relname, a.attnum;

-- [3] catalogue | simple | sent 1x | by: IMPORT FOREIGN SCHEMA LIMIT TO
-- result: relname name, attname name, format_type text, attnotnull boolean, pg_get_expr text, attgenerated "char", ?column? text, ?column? text
SELECT relname,   attname,   format_type(atttypid, atttypmod),   attnotnull,   pg_get_expr(adbin, adrelid),   attgenerated,   NULL, NULL FROM pg_class c   JOIN pg_namespace n ON     relnamespace = n.oid   LEFT JOIN pg_attribute a ON     attrelid = c.oid AND attnum > 0       AND NOT attisdropped   LEFT JOIN pg_attrdef ad ON     adrelid = c.oid AND adnum = attnum WHERE c.relkind IN ('r','v','f','m','p')   AND n.nspname = 'public' AND c.relname IN ('people', 'orders') ORDER BY c.relname, a.attnum;

-- [4] catalogue | simple | sent 5x | by: ANALYZE (default options); ANALYZE (use_remote_estimate, async_capable, fetch_size 10); ANALYZE sampling off; ANALYZE sampling bernoulli; ANALYZE sampling system
-- result: ?column? bigint
SELECT pg_catalog.pg_relation_size('public.people'::pg_catalog.regclass) / 8192;

-- [5] catalogue | simple | sent 4x | by: ANALYZE (default options); ANALYZE (use_remote_estimate, async_capable, fetch_size 10); ANALYZE sampling bernoulli; ANALYZE sampling system
-- result: reltuples real, relkind "char"
SELECT reltuples, relkind FROM pg_catalog.pg_class WHERE oid = 'public.people'::pg_catalog.regclass;

-- [6] catalogue | simple | sent 1x | by: ANALYZE view
-- result: ?column? bigint
SELECT pg_catalog.pg_relation_size('public.adults'::pg_catalog.regclass) / 8192;

-- [7] catalogue | simple | sent 1x | by: ANALYZE view
-- result: reltuples real, relkind "char"
SELECT reltuples, relkind FROM pg_catalog.pg_class WHERE oid = 'public.adults'::pg_catalog.regclass;

-- [8] session | simple | sent 66x | by: IMPORT FOREIGN SCHEMA public; IMPORT FOREIGN SCHEMA LIMIT TO; SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); … (66 actions)
-- result: SET
SET search_path = pg_catalog;

-- [9] session | simple | sent 66x | by: IMPORT FOREIGN SCHEMA public; IMPORT FOREIGN SCHEMA LIMIT TO; SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); … (66 actions)
-- result: SET
SET timezone = 'GMT';

-- [10] session | simple | sent 66x | by: IMPORT FOREIGN SCHEMA public; IMPORT FOREIGN SCHEMA LIMIT TO; SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); … (66 actions)
-- result: SET
SET datestyle = ISO;

-- [11] session | simple | sent 66x | by: IMPORT FOREIGN SCHEMA public; IMPORT FOREIGN SCHEMA LIMIT TO; SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); … (66 actions)
-- result: SET
SET intervalstyle = postgres;

-- [12] session | simple | sent 66x | by: IMPORT FOREIGN SCHEMA public; IMPORT FOREIGN SCHEMA LIMIT TO; SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); … (66 actions)
-- result: SET
SET extra_float_digits = 3;

-- [13] session | simple | sent 64x | by: IMPORT FOREIGN SCHEMA public; IMPORT FOREIGN SCHEMA LIMIT TO; SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); … (64 actions)
-- result: START TRANSACTION
START TRANSACTION ISOLATION LEVEL REPEATABLE READ;

-- [14] session | simple | sent 61x | by: IMPORT FOREIGN SCHEMA public; IMPORT FOREIGN SCHEMA LIMIT TO; SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); … (61 actions)
-- result: COMMIT
COMMIT TRANSACTION;

-- [15] session | extended | sent 6x | by: SELECT (default options); SELECT ORDER BY expression LIMIT OFFSET (default options); count(distinct) filter (default options); SELECT (use_remote_estimate, async_capable, fetch_size 10); SELECT ORDER BY expression LIMIT OFFSET (use_remote_estimate, async_capable, fetch_size 10); … (6 actions)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id, doc FROM public.people;

-- [16] session | simple | sent 26x | by: SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); SELECT ORDER BY LIMIT (default options); SELECT ORDER BY expression LIMIT OFFSET (default options); … (26 actions)
-- result: id text, doc jsonb
FETCH 100 FROM c1;

-- [17] session | simple | sent 46x | by: SELECT (default options); SELECT condition (default options); SELECT conditions on doc (default options); SELECT ORDER BY LIMIT (default options); SELECT ORDER BY expression LIMIT OFFSET (default options); … (46 actions)
-- result: CLOSE CURSOR
CLOSE c1;

-- [18] session | extended | sent 4x | by: SELECT condition (default options); join (default options); SELECT condition (use_remote_estimate, async_capable, fetch_size 10); join (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id FROM public.people WHERE ((id = 'p1'));

-- [19] session | extended | sent 2x | by: SELECT conditions on doc (default options); SELECT conditions on doc (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id, doc FROM public.people WHERE ((id ~~ 'p%')) AND ((id = ANY ('{p1,p2}'::text[])));

-- [20] session | extended | sent 2x | by: SELECT ORDER BY LIMIT (default options); SELECT ORDER BY LIMIT (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id FROM public.people ORDER BY id ASC NULLS LAST LIMIT 3::bigint;

-- [21] session | extended | sent 2x | by: aggregate (default options); aggregate (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT count(*), min(id), max(id) FROM public.people;

-- [22] session | extended | sent 2x | by: aggregate GROUP BY HAVING (default options); aggregate GROUP BY HAVING (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT doc FROM public.people;

-- [23] session | extended | sent 3x | by: join (default options); left join (default options); join (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c2 CURSOR FOR
SELECT id, doc FROM public.orders;

-- [24] session | simple | sent 9x | by: join (default options); left join (default options); semi join (default options)
-- result: id text, doc jsonb
FETCH 100 FROM c2;

-- [25] session | simple | sent 7x | by: join (default options); left join (default options); semi join (default options); join (use_remote_estimate, async_capable, fetch_size 10); left join (use_remote_estimate, async_capable, fetch_size 10); … (7 actions)
-- result: CLOSE CURSOR
CLOSE c2;

-- [26] session | extended | sent 6x | by: left join (default options); semi join (default options); parameter (nested loop) (default options); semi join (use_remote_estimate, async_capable, fetch_size 10); parameter (nested loop) (use_remote_estimate, async_capable, fetch_size 10); … (6 actions)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id FROM public.people;

-- [27] session | extended | sent 2x | by: semi join (default options); semi join (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c2 CURSOR FOR
SELECT doc FROM public.orders;

-- [28] session | extended | sent 2x | by: whole row, ctid (default options); whole row, ctid (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id, doc, ctid FROM public.people WHERE ((id = 'p1'));

-- [29] session | extended | sent 2x | by: = ANY(array) (default options); = ANY(array) (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id FROM public.people WHERE ((id = ANY ('{p1,p2}'::text[])));

-- [30] session | extended | sent 2x | by: FOR UPDATE (default options); FOR UPDATE (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id, doc FROM public.people WHERE ((id = 'p1')) FOR UPDATE;

-- [31] session | simple | sent 10x | by: INSERT (default options); INSERT many, RETURNING (default options); INSERT ON CONFLICT DO NOTHING (default options); UPDATE with local condition (default options); DELETE with local condition (default options); … (10 actions)
-- result: DEALLOCATE
DEALLOCATE pgsql_fdw_prep_1;

-- [32] session | extended | sent 2x | by: UPDATE with local condition (default options); UPDATE with local condition (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id, doc, ctid FROM public.orders WHERE ((id = 'f1')) FOR UPDATE;

-- [33] session | extended | sent 2x | by: DELETE with local condition (default options); DELETE with local condition (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT ctid FROM public.orders WHERE ((id ~~ 'f%')) FOR UPDATE;

-- [34] session | simple | sent 5x | by: TRUNCATE (rolled back) (default options); cursor (default options); error (default options); TRUNCATE (rolled back) (use_remote_estimate, async_capable, fetch_size 10); error (use_remote_estimate, async_capable, fetch_size 10)
-- result: ROLLBACK
ABORT TRANSACTION;

-- [35] session | extended | sent 4x | by: savepoint (default options); SERIALIZABLE (default options); savepoint (use_remote_estimate, async_capable, fetch_size 10); SERIALIZABLE (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT NULL FROM public.people LIMIT 1::bigint;

-- [36] session | simple | sent 2x | by: savepoint (default options); savepoint (use_remote_estimate, async_capable, fetch_size 10)
-- result: SAVEPOINT
SAVEPOINT s2;

-- [37] session | simple | sent 2x | by: savepoint (default options); savepoint (use_remote_estimate, async_capable, fetch_size 10)
-- result: ROLLBACK, RELEASE
ROLLBACK TO SAVEPOINT s2; RELEASE SAVEPOINT s2;

-- [38] session | simple | sent 2x | by: SERIALIZABLE (default options); SERIALIZABLE (use_remote_estimate, async_capable, fetch_size 10)
-- result: START TRANSACTION
START TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [39] session | extended | sent 1x | by: cursor (default options)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id FROM public.people ORDER BY id ASC NULLS LAST;

-- [40] session | simple | sent 5x | by: ANALYZE (default options); ANALYZE (use_remote_estimate, async_capable, fetch_size 10); ANALYZE sampling off; ANALYZE sampling bernoulli; ANALYZE sampling system
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR SELECT id, doc FROM public.people;

-- [41] session | extended | sent 2x | by: error (default options); error (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id FROM public.people WHERE (((1 / (length(id) - 2)) > 0));

-- [42] session | simple | sent 68x | by: SELECT (use_remote_estimate, async_capable, fetch_size 10); SELECT condition (use_remote_estimate, async_capable, fetch_size 10); SELECT conditions on doc (use_remote_estimate, async_capable, fetch_size 10); SELECT ORDER BY LIMIT (use_remote_estimate, async_capable, fetch_size 10); SELECT ORDER BY expression LIMIT OFFSET (use_remote_estimate, async_capable, fetch_size 10); … (23 actions)
-- result: id text, doc jsonb
FETCH 10 FROM c1;

-- [43] session | simple | sent 72x | by: join (use_remote_estimate, async_capable, fetch_size 10); left join (use_remote_estimate, async_capable, fetch_size 10); semi join (use_remote_estimate, async_capable, fetch_size 10); async Append of two
-- result: id text, doc jsonb
FETCH 10 FROM c2;

-- [44] session | extended | sent 1x | by: left join (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c2 CURSOR FOR
SELECT id FROM public.people;

-- [45] session | extended | sent 1x | by: left join (use_remote_estimate, async_capable, fetch_size 10)
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT id, doc FROM public.orders;

-- [46] session | extended | sent 1x | by: async Append of two
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR
SELECT NULL FROM public.people;

-- [47] session | extended | sent 1x | by: async Append of two
-- result: DECLARE CURSOR
DECLARE c2 CURSOR FOR
SELECT NULL FROM public.orders;

-- [48] session | simple | sent 1x | by: ANALYZE view
-- result: DECLARE CURSOR
DECLARE c1 CURSOR FOR SELECT id, name, age FROM public.adults;

-- [49] data | extended | sent 2x | by: INSERT (default options); INSERT (use_remote_estimate, async_capable, fetch_size 10)
-- parameters: $1 text (Parse says unspecified) = 'f1', $2 jsonb (Parse says unspecified) = '{}'
-- wire: named statement
-- result: INSERT n n
INSERT INTO public.orders(id, doc) VALUES ($1, $2);

-- [50] data | extended | sent 2x | by: INSERT many, RETURNING (default options); INSERT many, RETURNING (use_remote_estimate, async_capable, fetch_size 10)
-- parameters: $1 text (Parse says unspecified) = 'f2', $2 jsonb (Parse says unspecified) = '{}'
-- wire: named statement
-- result: id text
INSERT INTO public.orders(id, doc) VALUES ($1, $2) RETURNING id;

-- [51] data | extended | sent 2x | by: INSERT ON CONFLICT DO NOTHING (default options); INSERT ON CONFLICT DO NOTHING (use_remote_estimate, async_capable, fetch_size 10)
-- parameters: $1 text (Parse says unspecified) = 'f2', $2 jsonb (Parse says unspecified) = '{}'
-- wire: named statement
-- result: INSERT n n
INSERT INTO public.orders(id, doc) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- [52] data | extended | sent 2x | by: UPDATE direct (default options); UPDATE direct (use_remote_estimate, async_capable, fetch_size 10)
-- result: UPDATE n
UPDATE public.orders SET doc = '{"a": 1}'::jsonb WHERE ((id = 'f1'));

-- [53] data | extended | sent 2x | by: UPDATE RETURNING (default options); UPDATE RETURNING (use_remote_estimate, async_capable, fetch_size 10)
-- result: id text
UPDATE public.orders SET doc = '{"a": 2}'::jsonb WHERE ((id = 'f1')) RETURNING id;

-- [54] data | extended | sent 2x | by: UPDATE with local condition (default options); UPDATE with local condition (use_remote_estimate, async_capable, fetch_size 10)
-- parameters: $1 tid (Parse says unspecified) = '(2,75)', $2 jsonb (Parse says unspecified) = '{"a": 1}'
-- wire: named statement
-- result: UPDATE n
UPDATE public.orders SET doc = $2 WHERE ctid = $1;

-- [55] data | extended | sent 2x | by: DELETE (default options); DELETE (use_remote_estimate, async_capable, fetch_size 10)
-- result: DELETE n
DELETE FROM public.orders WHERE ((id = 'f2'));

-- [56] data | extended | sent 2x | by: DELETE with local condition (default options); DELETE with local condition (use_remote_estimate, async_capable, fetch_size 10)
-- parameters: $1 tid (Parse says unspecified) = '(2,73)'
-- wire: named statement
-- result: DELETE n
DELETE FROM public.orders WHERE ctid = $1;

-- [57] data | simple | sent 2x | by: TRUNCATE (rolled back) (default options); TRUNCATE (rolled back) (use_remote_estimate, async_capable, fetch_size 10)
-- result: TRUNCATE TABLE
TRUNCATE public.orders CONTINUE IDENTITY RESTRICT;

-- [58] data | extended | sent 2x | by: savepoint (default options); savepoint (use_remote_estimate, async_capable, fetch_size 10)
-- result: UPDATE n
UPDATE public.orders SET doc = '{}'::jsonb WHERE ((id = 'o1'));

-- [59] data | simple | sent 3x | by: SELECT (use_remote_estimate, async_capable, fetch_size 10); SELECT ORDER BY expression LIMIT OFFSET (use_remote_estimate, async_capable, fetch_size 10); count(distinct) filter (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id, doc FROM public.people;

-- [60] data | simple | sent 3x | by: SELECT condition (use_remote_estimate, async_capable, fetch_size 10); join (use_remote_estimate, async_capable, fetch_size 10); EXPLAIN VERBOSE (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id FROM public.people WHERE ((id = 'p1'));

-- [61] data | simple | sent 1x | by: SELECT conditions on doc (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id, doc FROM public.people WHERE ((id ~~ 'p%')) AND ((id = ANY ('{p1,p2}'::text[])));

-- [62] data | simple | sent 6x | by: SELECT ORDER BY LIMIT (use_remote_estimate, async_capable, fetch_size 10); aggregate (use_remote_estimate, async_capable, fetch_size 10); left join (use_remote_estimate, async_capable, fetch_size 10); semi join (use_remote_estimate, async_capable, fetch_size 10); parameter (nested loop) (use_remote_estimate, async_capable, fetch_size 10); … (6 actions)
-- result: QUERY PLAN text
EXPLAIN SELECT id FROM public.people;

-- [63] data | simple | sent 5x | by: SELECT ORDER BY LIMIT (use_remote_estimate, async_capable, fetch_size 10); left join (use_remote_estimate, async_capable, fetch_size 10); semi join (use_remote_estimate, async_capable, fetch_size 10); parameter (nested loop) (use_remote_estimate, async_capable, fetch_size 10); cursor (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id FROM public.people ORDER BY id ASC NULLS LAST;

-- [64] data | simple | sent 1x | by: SELECT ORDER BY LIMIT (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id FROM public.people ORDER BY id ASC NULLS LAST LIMIT 3::bigint;

-- [65] data | simple | sent 1x | by: aggregate (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT count(*), min(id), max(id) FROM public.people;

-- [66] data | simple | sent 1x | by: aggregate GROUP BY HAVING (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT doc FROM public.people;

-- [67] data | simple | sent 2x | by: join (use_remote_estimate, async_capable, fetch_size 10); left join (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id, doc FROM public.orders;

-- [68] data | simple | sent 1x | by: semi join (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT doc FROM public.orders;

-- [69] data | simple | sent 1x | by: whole row, ctid (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id, doc, ctid FROM public.people WHERE ((id = 'p1'));

-- [70] data | simple | sent 1x | by: parameter (nested loop) (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id FROM public.people WHERE ((id = ((SELECT null::text)::text)));

-- [71] data | simple | sent 1x | by: = ANY(array) (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id FROM public.people WHERE ((id = ANY ('{p1,p2}'::text[])));

-- [72] data | simple | sent 1x | by: FOR UPDATE (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id, doc FROM public.people WHERE ((id = 'p1')) FOR UPDATE;

-- [73] data | simple | sent 3x | by: UPDATE direct (use_remote_estimate, async_capable, fetch_size 10); UPDATE RETURNING (use_remote_estimate, async_capable, fetch_size 10); UPDATE with local condition (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id, doc, ctid FROM public.orders WHERE ((id = 'f1')) FOR UPDATE;

-- [74] data | simple | sent 1x | by: DELETE (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT ctid FROM public.orders WHERE ((id = 'f2')) FOR UPDATE;

-- [75] data | simple | sent 1x | by: DELETE with local condition (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT ctid FROM public.orders WHERE ((id ~~ 'f%')) FOR UPDATE;

-- [76] data | simple | sent 3x | by: savepoint (use_remote_estimate, async_capable, fetch_size 10); SERIALIZABLE (use_remote_estimate, async_capable, fetch_size 10); async Append of two
-- result: QUERY PLAN text
EXPLAIN SELECT NULL FROM public.people;

-- [77] data | simple | sent 1x | by: savepoint (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id, doc, ctid FROM public.orders WHERE ((id = 'o1')) FOR UPDATE;

-- [78] data | simple | sent 1x | by: error (use_remote_estimate, async_capable, fetch_size 10)
-- result: QUERY PLAN text
EXPLAIN SELECT id FROM public.people WHERE (((1 / (length(id) - 2)) > 0));

-- [79] data | simple | sent 1x | by: async Append of two
-- result: QUERY PLAN text
EXPLAIN SELECT NULL FROM public.orders;
