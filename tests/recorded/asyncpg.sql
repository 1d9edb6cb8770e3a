-- asyncpg: asyncpg 0.32.0
-- 35 statements: 3 catalogue, 13 session, 19 data

-- [1] catalogue | extended | sent 8x | by: fetch uuid[]; fetch enum; set_type_codec composite tuple; fetch array of composite; fetch numeric[]; … (8 actions)
-- parameters: $1 oid[] (Parse says unspecified) = {2951}
-- wire: binary parameters, binary results, named statement
-- result: oid oid, ns name, name name, kind "char", basetype oid, elemtype oid, elemdelim "char", range_subtype oid, attrtypoids oid[], attrnames text[], depth integer, basetype_name text, elemtype_name text, range_subtype_name text
WITH RECURSIVE typeinfo_tree(
    oid, ns, name, kind, basetype, elemtype, elemdelim,
    range_subtype, attrtypoids, attrnames, depth)
AS (
    SELECT
        ti.oid, ti.ns, ti.name, ti.kind, ti.basetype,
        ti.elemtype, ti.elemdelim, ti.range_subtype,
        ti.attrtypoids, ti.attrnames, 0
    FROM
            (
        SELECT
            t.oid                           AS oid,
            ns.nspname                      AS ns,
            t.typname                       AS name,
            t.typtype                       AS kind,
            (CASE WHEN t.typtype = 'd' THEN
                (WITH RECURSIVE typebases(oid, depth) AS (
                    SELECT
                        t2.typbasetype      AS oid,
                        0                   AS depth
                    FROM
                        pg_type t2
                    WHERE
                        t2.oid = t.oid

                    UNION ALL

                    SELECT
                        t2.typbasetype      AS oid,
                        tb.depth + 1        AS depth
                    FROM
                        pg_type t2,
                        typebases tb
                    WHERE
                       tb.oid = t2.oid
                       AND t2.typbasetype != 0
               ) SELECT oid FROM typebases ORDER BY depth DESC LIMIT 1)

               ELSE NULL
            END)                            AS basetype,
            t.typelem                       AS elemtype,
            elem_t.typdelim                 AS elemdelim,
            COALESCE(
                range_t.rngsubtype,
                multirange_t.rngsubtype)    AS range_subtype,
            (CASE WHEN t.typtype = 'c' THEN
                (SELECT
                    array_agg(ia.atttypid ORDER BY ia.attnum)
                FROM
                    pg_attribute ia
                    INNER JOIN pg_class c
                        ON (ia.attrelid = c.oid)
                WHERE
                    ia.attnum > 0 AND NOT ia.attisdropped
                    AND c.reltype = t.oid)

                ELSE NULL
            END)                            AS attrtypoids,
            (CASE WHEN t.typtype = 'c' THEN
                (SELECT
                    array_agg(ia.attname::text ORDER BY ia.attnum)
                FROM
                    pg_attribute ia
                    INNER JOIN pg_class c
                        ON (ia.attrelid = c.oid)
                WHERE
                    ia.attnum > 0 AND NOT ia.attisdropped
                    AND c.reltype = t.oid)

                ELSE NULL
            END)                            AS attrnames
        FROM
            pg_catalog.pg_type AS t
            INNER JOIN pg_catalog.pg_namespace ns ON (
                ns.oid = t.typnamespace)
            LEFT JOIN pg_type elem_t ON (
                t.typlen = -1 AND
                t.typelem != 0 AND
                t.typelem = elem_t.oid
            )
            LEFT JOIN pg_range range_t ON (
                t.oid = range_t.rngtypid
            )
            LEFT JOIN pg_range multirange_t ON (
                t.oid = multirange_t.rngmultitypid
            )
    )
 AS ti
    WHERE
        ti.oid = any($1::oid[])

    UNION ALL

    SELECT
        ti.oid, ti.ns, ti.name, ti.kind, ti.basetype,
        ti.elemtype, ti.elemdelim, ti.range_subtype,
        ti.attrtypoids, ti.attrnames, tt.depth + 1
    FROM
            (
        SELECT
            t.oid                           AS oid,
            ns.nspname                      AS ns,
            t.typname                       AS name,
            t.typtype                       AS kind,
            (CASE WHEN t.typtype = 'd' THEN
                (WITH RECURSIVE typebases(oid, depth) AS (
                    SELECT
                        t2.typbasetype      AS oid,
                        0                   AS depth
                    FROM
                        pg_type t2
                    WHERE
                        t2.oid = t.oid

                    UNION ALL

                    SELECT
                        t2.typbasetype      AS oid,
                        tb.depth + 1        AS depth
                    FROM
                        pg_type t2,
                        typebases tb
                    WHERE
                       tb.oid = t2.oid
                       AND t2.typbasetype != 0
               ) SELECT oid FROM typebases ORDER BY depth DESC LIMIT 1)

               ELSE NULL
            END)                            AS basetype,
            t.typelem                       AS elemtype,
            elem_t.typdelim                 AS elemdelim,
            COALESCE(
                range_t.rngsubtype,
                multirange_t.rngsubtype)    AS range_subtype,
            (CASE WHEN t.typtype = 'c' THEN
                (SELECT
                    array_agg(ia.atttypid ORDER BY ia.attnum)
                FROM
                    pg_attribute ia
                    INNER JOIN pg_class c
                        ON (ia.attrelid = c.oid)
                WHERE
                    ia.attnum > 0 AND NOT ia.attisdropped
                    AND c.reltype = t.oid)

                ELSE NULL
            END)                            AS attrtypoids,
            (CASE WHEN t.typtype = 'c' THEN
                (SELECT
                    array_agg(ia.attname::text ORDER BY ia.attnum)
                FROM
                    pg_attribute ia
                    INNER JOIN pg_class c
                        ON (ia.attrelid = c.oid)
                WHERE
                    ia.attnum > 0 AND NOT ia.attisdropped
                    AND c.reltype = t.oid)

                ELSE NULL
            END)                            AS attrnames
        FROM
            pg_catalog.pg_type AS t
            INNER JOIN pg_catalog.pg_namespace ns ON (
                ns.oid = t.typnamespace)
            LEFT JOIN pg_type elem_t ON (
                t.typlen = -1 AND
                t.typelem != 0 AND
                t.typelem = elem_t.oid
            )
            LEFT JOIN pg_range range_t ON (
                t.oid = range_t.rngtypid
            )
            LEFT JOIN pg_range multirange_t ON (
                t.oid = multirange_t.rngmultitypid
            )
    )
 ti,
        typeinfo_tree tt
    WHERE
        (tt.elemtype IS NOT NULL AND ti.oid = tt.elemtype)
        OR (tt.attrtypoids IS NOT NULL AND ti.oid = any(tt.attrtypoids))
        OR (tt.range_subtype IS NOT NULL AND ti.oid = tt.range_subtype)
        OR (tt.basetype IS NOT NULL AND ti.oid = tt.basetype)
)

SELECT DISTINCT
    *,
    basetype::regtype::text AS basetype_name,
    elemtype::regtype::text AS elemtype_name,
    range_subtype::regtype::text AS range_subtype_name
FROM
    typeinfo_tree
ORDER BY
    depth DESC;

-- [2] catalogue | extended | sent 2x | by: fetch catalogue domain
-- wire: binary parameters, binary results, named statement
-- result: table_name name
select table_name from information_schema.tables limit 1;

-- [3] catalogue | extended | sent 6x | by: set_builtin_type_codec hstore; set_type_codec enum; set_type_codec composite tuple
-- parameters: $1 name (Parse says unspecified) = 'hstore', $2 name (Parse says unspecified) = 'public'
-- wire: Execute limit 1, binary parameters, binary results, named statement
-- result: oid oid, elemtype oid, kind "char"
SELECT
    t.oid,
    t.typelem     AS elemtype,
    t.typtype     AS kind
FROM
    pg_catalog.pg_type AS t
    INNER JOIN pg_catalog.pg_namespace ns ON (ns.oid = t.typnamespace)
WHERE
    t.typname = $1 AND ns.nspname = $2;

-- [4] session | extended | sent 6x | by: fetch; transaction; pool acquire/release
-- wire: binary parameters, binary results, named statement
-- result: ?column? integer
select 1;

-- [5] session | extended | sent 2x | by: fetch uuid[]
-- parameters: $1 uuid[] (Parse says unspecified) = \x000000010000000000000b86000000010000000100000010848db73e60
-- wire: binary parameters, binary results, named statement
-- result: uuid uuid[]
select $1::uuid[];

-- [6] session | extended | sent 8x | by: fetch uuid[]; fetch enum; set_type_codec composite tuple; fetch array of composite; fetch numeric[]; … (8 actions)
-- wire: binary parameters, binary results, named statement
-- result: cur text, new text
SELECT
                        current_setting('jit') AS cur,
                        set_config('jit', 'off', false) AS new;

-- [7] session | extended | sent 8x | by: fetch uuid[]; fetch enum; set_type_codec composite tuple; fetch array of composite; fetch numeric[]; … (8 actions)
-- parameters: $1 text (Parse says unspecified) = 'on'
-- wire: binary parameters, binary results, named statement
-- result: set_config text
SELECT
                    set_config('jit', $1, false);

-- [8] session | simple | sent 2x | by: execute script
-- result: ?column? integer
-- result: ?column? integer
select 1; select 2;

-- [9] session | simple | sent 2x | by: transaction
-- result: BEGIN
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;

-- [10] session | simple | sent 6x | by: transaction; cursor
-- result: COMMIT
COMMIT;

-- [11] session | simple | sent 4x | by: transaction; cursor
-- result: BEGIN
BEGIN;

-- [12] session | simple | sent 2x | by: transaction
-- result: SAVEPOINT
SAVEPOINT __asyncpg_savepoint_e__;

-- [13] session | simple | sent 2x | by: transaction
-- result: RELEASE
RELEASE SAVEPOINT __asyncpg_savepoint_e__;

-- [14] session | simple | sent 2x | by: cursor
-- result: MOVE n
MOVE FORWARD 2 __asyncpg_portal_11__;

-- [15] session | extended | sent 2x | by: add_listener
-- wire: binary parameters, binary results, named statement
-- result: LISTEN
LISTEN "ch";

-- [16] session | simple | sent 4x | by: reset; pool acquire/release
-- result: pg_advisory_unlock_all void
SELECT pg_advisory_unlock_all();
CLOSE ALL;
UNLISTEN *;
RESET ALL;

-- [17] data | extended | sent 2x | by: fetch params
-- parameters: $1 text (Parse says unspecified) = 'p1', $2 bigint (Parse says unspecified) = 3
-- wire: binary parameters, binary results, named statement
-- result: id text, doc jsonb
select id, doc from people where id=$1 limit $2;

-- [18] data | extended | sent 2x | by: fetch numeric[]
-- parameters: $1 numeric[] (Parse says unspecified) = \x0000000100000000000006a400000001000000010000000a0001000000, $2 jsonb[] (Parse says unspecified) = \x000000010000000000000eda0000000100000001000000020131, $3 timestamp with time zone[] (Parse says unspecified) = \x0000000100000000000004a00000000000000001
-- wire: binary parameters, binary results, named statement
-- result: numeric numeric[], jsonb jsonb[], timestamptz timestamp with time zone[]
select $1::numeric[], $2::jsonb[], $3::timestamptz[];

-- [19] data | extended | sent 2x | by: fetch text[]
-- parameters: $1 text[] (Parse says unspecified) = {p1}
-- wire: binary parameters, binary results, named statement
-- result: id text
select id from people where id=any($1);

-- [20] data | extended | sent 2x | by: fetch int4range, record
-- wire: binary parameters, binary results, named statement
-- result: int4range int4range, row record, int4multirange int4multirange
select int4range(1,2), row(1,'a'), int4multirange();

-- [21] data | extended | sent 2x | by: executemany
-- parameters: $1 text (Parse says unspecified) = 'w1', $2 jsonb (Parse says unspecified) = '{}'
-- wire: binary parameters, binary results, named statement
-- result: INSERT n n
insert into orders values($1,$2) on conflict do nothing;

-- [22] data | extended | sent 2x | by: fetch after set_type_codec
-- wire: binary parameters, named statement
-- result: doc jsonb
select doc from people limit 1;

-- [23] data | extended | sent 2x | by: cursor
-- wire: Execute limit 10, Execute limit 3, binary parameters, binary results, named statement
-- result: id text
select id from people;

-- [24] data | extended | sent 2x | by: prepare + explain
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: binary parameters, binary results, named statement
-- result: id text, doc jsonb
select id, doc from people where id=$1;

-- [25] data | extended | sent 2x | by: prepare + explain
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: Execute limit 1, binary parameters, binary results, named statement
-- result: QUERY PLAN json
EXPLAIN (FORMAT JSON, VERBOSE) select id, doc from people where id=$1;

-- [26] data | simple | sent 2x | by: copy_from_table
-- result: COPY n
COPY "people" TO STDOUT;

-- [27] data | extended | sent 6x | by: copy_from_query; fetch uncached
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: binary parameters, binary results, named statement
-- result: id text
select id from people where id=$1;

-- [28] data | extended | sent 2x | by: copy_from_query
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: Execute limit 1, binary parameters, binary results, named statement
-- result: quote_literal text
SELECT quote_literal($1::"pg_catalog"."text"::text);

-- [29] data | simple | sent 2x | by: copy_from_query
-- result: COPY n
COPY (select id from people where id='p1') TO STDOUT;

-- [30] data | extended | sent 2x | by: copy_records_to_table
-- wire: named statement, only Parse/Describe
-- result: id text, doc jsonb
SELECT "id", "doc" FROM "orders" LIMIT 1;

-- [31] data | simple | sent 2x | by: copy_records_to_table
-- result: COPY n
COPY "orders"("id", "doc") FROM STDIN (FORMAT binary);

-- [32] data | extended | sent 2x | by: fetch enum
-- parameters: $1 mood (Parse says unspecified) = \x6f6b
-- wire: binary parameters, binary results, named statement
-- result: m mood
select m from t where m=$1;

-- [33] data | extended | sent 2x | by: fetch composite
-- wire: binary parameters, binary results, named statement
-- result: p point2, d deep
select p, d from t;

-- [34] data | extended | sent 2x | by: fetch hstore
-- wire: binary parameters, named statement
-- result: h hstore
select h from t;

-- [35] data | extended | sent 2x | by: fetch array of composite
-- wire: binary parameters, binary results for some columns, named statement
-- result: array point2[], array mood[]
select array[row(1,2)::point2], array['ok'::mood];
