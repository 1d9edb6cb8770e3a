-- psycopg3: psycopg 3.3.9
-- 35 statements: 6 catalogue, 20 session, 9 data

-- [1] catalogue | extended | sent 6x | by: TypeInfo.fetch(hstore); TypeInfo.fetch (missing)
-- parameters: $1 text (Parse says unspecified) = 'hstore'
-- result: name name, oid oid, array_oid oid, regtype text, delimiter "char"
SELECT
    typname AS name, oid, typarray AS array_oid,
    oid::regtype::text AS regtype, typdelim AS delimiter
FROM pg_type t
WHERE t.oid = to_regtype($1)
ORDER BY t.oid;

-- [2] catalogue | extended | sent 2x | by: EnumInfo.fetch
-- parameters: $1 text (Parse says unspecified) = 'mood'
-- result: name name, oid oid, array_oid oid, regtype text, labels name[]
SELECT name, oid, array_oid, regtype, array_agg(label) AS labels
FROM (
    SELECT
        t.typname AS name, t.oid AS oid, t.typarray AS array_oid,
        t.oid::regtype::text AS regtype, e.enumlabel AS label
    FROM pg_type t
    LEFT JOIN  pg_enum e
    ON e.enumtypid = t.oid
    WHERE t.oid = to_regtype($1)
    ORDER BY e.enumsortorder
) x
GROUP BY name, oid, array_oid, regtype;

-- [3] catalogue | extended | sent 2x | by: CompositeInfo.fetch
-- parameters: $1 text (Parse says unspecified) = 'point2'
-- result: name name, oid oid, array_oid oid, regtype text, field_names name[], field_types oid[]
SELECT
    t.typname AS name, t.oid AS oid, t.typarray AS array_oid,
    t.oid::regtype::text AS regtype,
    coalesce(a.fnames, '{}') AS field_names,
    coalesce(a.ftypes, '{}') AS field_types
FROM pg_type t
LEFT JOIN (
    SELECT
        attrelid,
        array_agg(attname) AS fnames,
        array_agg(atttypid) AS ftypes
    FROM (
        SELECT a.attrelid, a.attname, a.atttypid
        FROM pg_attribute a
        JOIN pg_type t ON t.typrelid = a.attrelid
        WHERE t.oid = to_regtype($1)
        AND a.attnum > 0
        AND NOT a.attisdropped
        ORDER BY a.attnum
    ) x
    GROUP BY attrelid
) a ON a.attrelid = t.typrelid
WHERE t.oid = to_regtype($1);

-- [4] catalogue | extended | sent 2x | by: RangeInfo.fetch
-- parameters: $1 text (Parse says unspecified) = 'numr'
-- result: name name, oid oid, array_oid oid, regtype text, subtype_oid oid
SELECT t.typname AS name, t.oid AS oid, t.typarray AS array_oid,
    t.oid::regtype::text AS regtype,
    r.rngsubtype AS subtype_oid
FROM pg_type t
JOIN pg_range r ON t.oid = r.rngtypid
WHERE t.oid = to_regtype($1);

-- [5] catalogue | extended | sent 2x | by: MultirangeInfo.fetch
-- parameters: $1 text (Parse says unspecified) = 'nummultirange'
-- result: name name, oid oid, array_oid oid, regtype text, range_oid oid, subtype_oid oid
SELECT t.typname AS name, t.oid AS oid, t.typarray AS array_oid,
    t.oid::regtype::text AS regtype,
    r.rngtypid AS range_oid, r.rngsubtype AS subtype_oid
FROM pg_type t
JOIN pg_range r ON t.oid = r.rngmultitypid
WHERE t.oid = to_regtype($1);

-- [6] catalogue | simple | sent 2x | by: tpc_recover
-- result: gid text, prepared timestamp with time zone, owner name, database name
SELECT gid, prepared, owner, database FROM pg_prepared_xacts;

-- [7] session | simple and extended | sent 32x | by: first execute; execute with parameters; server-side cursor; server-side cursor scrollable hold; transaction() nested; … (15 actions)
-- result: BEGIN
BEGIN;

-- [8] session | simple and extended | sent 8x | by: first execute; transaction() nested; pipeline; isolation_level, read_only, deferrable
-- result: ?column? integer
select 1;

-- [9] session | simple | sent 18x | by: commit; transaction() nested; TypeInfo.fetch(hstore); EnumInfo.fetch; CompositeInfo.fetch; … (8 actions)
-- result: COMMIT
COMMIT;

-- [10] session | simple | sent 14x | by: rollback; server-side cursor; server-side cursor scrollable hold; copy; pipeline; … (7 actions)
-- result: ROLLBACK
ROLLBACK;

-- [11] session | simple | sent 2x | by: rollback
-- result: DEALLOCATE ALL
DEALLOCATE ALL;

-- [12] session | extended | sent 2x | by: server-side cursor
-- result: DECLARE CURSOR
DECLARE "cur" CURSOR FOR select id from people;

-- [13] session | simple | sent 12x | by: server-side cursor
-- result: id text
FETCH FORWARD 10 FROM "cur";

-- [14] session | simple | sent 2x | by: server-side cursor
-- result: CLOSE CURSOR
CLOSE "cur";

-- [15] session | extended | sent 2x | by: server-side cursor scrollable hold
-- result: DECLARE CURSOR
DECLARE "cur2" SCROLL CURSOR WITH HOLD FOR select id from people;

-- [16] session | simple | sent 2x | by: server-side cursor scrollable hold
-- result: id text
FETCH FORWARD 1 FROM "cur2";

-- [17] session | simple | sent 2x | by: server-side cursor scrollable hold
-- result: MOVE n
MOVE 2 FROM "cur2";

-- [18] session | simple | sent 2x | by: server-side cursor scrollable hold
-- result: id text
FETCH FORWARD 3 FROM "cur2";

-- [19] session | simple | sent 2x | by: server-side cursor scrollable hold
-- result: CLOSE CURSOR
CLOSE "cur2";

-- [20] session | simple | sent 2x | by: transaction() nested
-- result: SAVEPOINT
SAVEPOINT "_pg3_2";

-- [21] session | simple | sent 4x | by: transaction() nested
-- result: ?column? integer
select 2;

-- [22] session | simple | sent 2x | by: transaction() nested
-- result: RELEASE
RELEASE "_pg3_2";

-- [23] session | simple | sent 2x | by: transaction() nested
-- result: SAVEPOINT
SAVEPOINT "sp";

-- [24] session | simple | sent 2x | by: transaction() nested
-- result: RELEASE
RELEASE "sp";

-- [25] session | simple | sent 2x | by: isolation_level, read_only, deferrable
-- result: BEGIN
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;

-- [26] session | extended | sent 2x | by: hstore value
-- parameters: $1 hstore = \x0000000100000001610000000162
-- wire: binary parameters
-- result: hstore hstore
select $1::hstore;

-- [27] data | extended | sent 2x | by: execute with parameters
-- parameters: $1 text (Parse says unspecified) = 'city', $2 text (Parse says unspecified) = 'c1', $3 text (Parse says unspecified) = 'a', $4 bigint (Parse says smallint) = 3
-- wire: binary parameters
-- result: id text, doc jsonb
select id, doc from people where doc->>$1=$2 and id>$3 limit $4;

-- [28] data | extended | sent 6x | by: execute prepare=True; pipeline; RawCursor execute
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: named statement
-- result: id text
select id from people where id=$1;

-- [29] data | extended | sent 2x | by: executemany
-- parameters: $1 text (Parse says unspecified) = 'z1', $2 jsonb (Parse says unspecified) = '{}'
-- wire: named statement
-- result: INSERT n n
insert into orders values($1,$2) on conflict do nothing;

-- [30] data | extended | sent 2x | by: executemany returning
-- parameters: $1 text (Parse says unspecified) = 'z3', $2 jsonb (Parse says unspecified) = '{}'
-- wire: named statement
-- result: id text
insert into orders values($1,$2) returning id;

-- [31] data | extended | sent 2x | by: execute Jsonb
-- parameters: $1 jsonb = '{"a": 1}', $2 text (Parse says unspecified) = 'z1'
-- result: id text
update orders set doc=$1 where id=$2 returning id;

-- [32] data | extended | sent 2x | by: ANY(list)
-- parameters: $1 text[] (Parse says unspecified) = '{p1,p2}'
-- result: id text
select id from people where id = any($1);

-- [33] data | simple | sent 2x | by: copy
-- result: COPY n
copy people to stdout;

-- [34] data | simple | sent 2x | by: copy
-- result: COPY n
copy orders (id,doc) from stdin;

-- [35] data | simple | sent 2x | by: ClientCursor execute
-- result: id text
select id from people where id='p1';
