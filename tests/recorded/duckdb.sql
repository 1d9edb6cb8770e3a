-- duckdb: DuckDB 1.5.5, postgres_scanner
-- 31 statements: 5 catalogue, 9 session, 17 data

-- [1] catalogue | simple | sent 2x | by: ATTACH; postgres_scan
-- result: version text, count bigint
SELECT version(), (SELECT COUNT(*) FROM pg_settings WHERE name LIKE 'rds%');

-- [2] catalogue | simple | sent 1x | by: ATTACH
-- result: to_regclass regclass
SELECT to_regclass('duckdb_secrets');

-- [3] catalogue | simple | sent 1x | by: SHOW ALL TABLES
-- result: oid oid, nspname name
-- result: namespace_id oid, relname name, relpages integer, attname name, type_name name, type_modifier integer, ndim smallint, attnum smallint, notnull boolean, constraint_id oid, constraint_type "char", constraint_key smallint[], type_schema name, column_comment text, table_comment text
-- result: oid oid, enumtypid oid, typname name, enumlabel name
-- result: oid oid, id oid, type name, attname name, typname name, sub_type_schema name
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;

SELECT oid, nspname
FROM pg_namespace

ORDER BY oid;

SELECT pg_namespace.oid AS namespace_id, relname, relpages, attname,
    pg_type.typname type_name, atttypmod type_modifier, pg_attribute.attndims ndim,
    attnum, pg_attribute.attnotnull AS notnull, NULL constraint_id,
    NULL constraint_type, NULL constraint_key, type_ns.nspname AS type_schema,
    col_desc.description AS column_comment,
    tbl_desc.description AS table_comment
FROM pg_class
JOIN pg_namespace ON relnamespace = pg_namespace.oid
JOIN pg_attribute ON pg_class.oid=pg_attribute.attrelid
JOIN pg_type ON atttypid=pg_type.oid
JOIN pg_namespace type_ns ON pg_type.typnamespace = type_ns.oid
LEFT JOIN pg_description col_desc ON col_desc.objoid=pg_class.oid AND col_desc.objsubid=pg_attribute.attnum
LEFT JOIN pg_description tbl_desc ON tbl_desc.objoid=pg_class.oid AND tbl_desc.objsubid=0
WHERE attnum > 0 AND relkind IN ('r', 'v', 'm', 'f', 'p') 
UNION ALL
SELECT pg_namespace.oid AS namespace_id, relname, NULL relpages, NULL attname, NULL type_name,
    NULL type_modifier, NULL ndim, NULL attnum, NULL AS notnull,
    pg_constraint.oid AS constraint_id, contype AS constraint_type,
    conkey AS constraint_key, NULL AS type_schema,
    NULL AS column_comment, NULL AS table_comment
FROM pg_class
JOIN pg_namespace ON relnamespace = pg_namespace.oid
JOIN pg_constraint ON (pg_class.oid=pg_constraint.conrelid)
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND contype IN ('p', 'u') 
ORDER BY namespace_id, relname, attnum, constraint_id;

SELECT n.oid, enumtypid, typname, enumlabel
FROM pg_enum e
JOIN pg_type t ON e.enumtypid = t.oid
JOIN pg_namespace AS n ON (typnamespace=n.oid)

ORDER BY n.oid, enumtypid, enumsortorder;

SELECT n.oid, t.typrelid AS id, t.typname as type, pg_attribute.attname, sub_type.typname,
       sub_type_ns.nspname AS sub_type_schema
FROM pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
JOIN pg_class ON pg_class.oid = t.typrelid
JOIN pg_attribute ON attrelid=t.typrelid
JOIN pg_type sub_type ON (pg_attribute.atttypid=sub_type.oid)
JOIN pg_catalog.pg_namespace sub_type_ns ON sub_type_ns.oid = sub_type.typnamespace
WHERE pg_class.relkind IN ('c', 'r', 'v', 'm', 'f', 'p')
AND t.typtype='c'
AND pg_attribute.attnum > 0
AND NOT pg_attribute.attisdropped

ORDER BY n.oid, t.oid, attrelid, attnum;

SELECT pg_namespace.oid, tablename, indexname
FROM pg_indexes
JOIN pg_namespace ON (schemaname=nspname)

ORDER BY pg_namespace.oid;

-- [4] catalogue | simple | sent 1x | by: CREATE TABLE AS
-- result: namespace_id oid, relname name, relpages integer, attname name, type_name name, type_modifier integer, ndim smallint, attnum smallint, notnull boolean, constraint_id oid, constraint_type "char", constraint_key smallint[], type_schema name, column_comment text, table_comment text
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;

SELECT pg_namespace.oid AS namespace_id, relname, relpages, attname,
    pg_type.typname type_name, atttypmod type_modifier, pg_attribute.attndims ndim,
    attnum, pg_attribute.attnotnull AS notnull, NULL constraint_id,
    NULL constraint_type, NULL constraint_key, type_ns.nspname AS type_schema,
    col_desc.description AS column_comment,
    tbl_desc.description AS table_comment
FROM pg_class
JOIN pg_namespace ON relnamespace = pg_namespace.oid
JOIN pg_attribute ON pg_class.oid=pg_attribute.attrelid
JOIN pg_type ON atttypid=pg_type.oid
JOIN pg_namespace type_ns ON pg_type.typnamespace = type_ns.oid
LEFT JOIN pg_description col_desc ON col_desc.objoid=pg_class.oid AND col_desc.objsubid=pg_attribute.attnum
LEFT JOIN pg_description tbl_desc ON tbl_desc.objoid=pg_class.oid AND tbl_desc.objsubid=0
WHERE attnum > 0 AND relkind IN ('r', 'v', 'm', 'f', 'p') AND pg_namespace.nspname IN ('public')AND relname='tmp_duck'
UNION ALL
SELECT pg_namespace.oid AS namespace_id, relname, NULL relpages, NULL attname, NULL type_name,
    NULL type_modifier, NULL ndim, NULL attnum, NULL AS notnull,
    pg_constraint.oid AS constraint_id, contype AS constraint_type,
    conkey AS constraint_key, NULL AS type_schema,
    NULL AS column_comment, NULL AS table_comment
FROM pg_class
JOIN pg_namespace ON relnamespace = pg_namespace.oid
JOIN pg_constraint ON (pg_class.oid=pg_constraint.conrelid)
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND contype IN ('p', 'u') AND pg_namespace.nspname IN ('public')AND relname='tmp_duck'
ORDER BY namespace_id, relname, attnum, constraint_id;

-- [5] catalogue | simple | sent 1x | by: postgres_scan
-- result: namespace_id oid, relname name, relpages integer, attname name, type_name name, type_modifier integer, ndim smallint, attnum smallint, notnull boolean, constraint_id oid, constraint_type "char", constraint_key smallint[], type_schema name, column_comment text, table_comment text
SELECT pg_namespace.oid AS namespace_id, relname, relpages, attname,
    pg_type.typname type_name, atttypmod type_modifier, pg_attribute.attndims ndim,
    attnum, pg_attribute.attnotnull AS notnull, NULL constraint_id,
    NULL constraint_type, NULL constraint_key, type_ns.nspname AS type_schema,
    col_desc.description AS column_comment,
    tbl_desc.description AS table_comment
FROM pg_class
JOIN pg_namespace ON relnamespace = pg_namespace.oid
JOIN pg_attribute ON pg_class.oid=pg_attribute.attrelid
JOIN pg_type ON atttypid=pg_type.oid
JOIN pg_namespace type_ns ON pg_type.typnamespace = type_ns.oid
LEFT JOIN pg_description col_desc ON col_desc.objoid=pg_class.oid AND col_desc.objsubid=pg_attribute.attnum
LEFT JOIN pg_description tbl_desc ON tbl_desc.objoid=pg_class.oid AND tbl_desc.objsubid=0
WHERE attnum > 0 AND relkind IN ('r', 'v', 'm', 'f', 'p') AND pg_namespace.nspname IN ('public')AND relname='people'
UNION ALL
SELECT pg_namespace.oid AS namespace_id, relname, NULL relpages, NULL attname, NULL type_name,
    NULL type_modifier, NULL ndim, NULL attnum, NULL AS notnull,
    pg_constraint.oid AS constraint_id, contype AS constraint_type,
    conkey AS constraint_key, NULL AS type_schema,
    NULL AS column_comment, NULL AS table_comment
FROM pg_class
JOIN pg_namespace ON relnamespace = pg_namespace.oid
JOIN pg_constraint ON (pg_class.oid=pg_constraint.conrelid)
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND contype IN ('p', 'u') AND pg_namespace.nspname IN ('public')AND relname='people'
ORDER BY namespace_id, relname, attnum, constraint_id;

-- [6] session | simple | sent 35x | by: ATTACH; SHOW ALL TABLES; SELECT; SELECT count; SELECT join, aggregate; … (17 actions)
-- result: ?column? integer
SELECT 1;

-- [7] session | simple | sent 18x | by: ATTACH; SHOW ALL TABLES; SELECT; SELECT count; SELECT join, aggregate; … (17 actions)
-- result: DISCARD ALL
DISCARD ALL;

-- [8] session | simple | sent 13x | by: SHOW ALL TABLES; SELECT; SELECT count; SELECT join, aggregate; SELECT view; … (13 actions)
-- result: COMMIT
COMMIT;

-- [9] session | simple | sent 10x | by: SELECT; SELECT count; SELECT join, aggregate; SELECT view; INSERT; … (10 actions)
-- result: BEGIN
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;

-- [10] session | simple | sent 2x | by: UPDATE; transaction
-- result: ROLLBACK
ROLLBACK;

-- [11] session | simple | sent 1x | by: CREATE INDEX
-- result: BEGIN, CREATE INDEX
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;
CREATE INDEX tmp_duck_a ON public.tmp_duck(a);

-- [12] session | simple | sent 1x | by: DROP TABLE
-- result: BEGIN, DROP TABLE
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;
DROP Table "public"."tmp_duck";

-- [13] session | simple | sent 1x | by: postgres_execute
-- result: ?column? integer
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;
select 1;

-- [14] session | simple | sent 1x | by: postgres_scan
-- result: BEGIN
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- [15] data | simple | sent 1x | by: SELECT
-- result: COPY n
COPY (SELECT "id", "doc" FROM "public"."people" WHERE "id" = 'p1' COLLATE "C" LIMIT 3) TO STDOUT (FORMAT "binary");

-- [16] data | simple | sent 2x | by: SELECT count; transaction
-- result: COPY n
COPY (SELECT NULL FROM "public"."people" WHERE ctid BETWEEN '(0,0)'::tid AND '(4294967295,0)'::tid) TO STDOUT (FORMAT "binary");

-- [17] data | simple | sent 1x | by: SELECT join, aggregate
-- result: COPY n
COPY (SELECT "doc" FROM "public"."orders" WHERE ctid BETWEEN '(0,0)'::tid AND '(4294967295,0)'::tid) TO STDOUT (FORMAT "binary");

-- [18] data | simple | sent 1x | by: SELECT join, aggregate
-- result: COPY n
COPY (SELECT "id" FROM "public"."people" WHERE ctid BETWEEN '(0,0)'::tid AND '(4294967295,0)'::tid) TO STDOUT (FORMAT "binary");

-- [19] data | simple | sent 1x | by: SELECT view
-- result: COPY n
COPY (SELECT "id", "name", "age" FROM "public"."adults"  LIMIT 3) TO STDOUT (FORMAT "binary");

-- [20] data | simple | sent 2x | by: INSERT; transaction
-- result: COPY n
COPY "public"."orders" FROM STDIN (FORMAT TEXT, NULL '');

-- [21] data | simple | sent 2x | by: UPDATE; DELETE
-- result: COPY n
COPY (SELECT "id", ctid FROM "public"."orders" WHERE ctid BETWEEN '(0,0)'::tid AND '(4294967295,0)'::tid AND "id" = 'dd1' COLLATE "C") TO STDOUT (FORMAT "binary");

-- [22] data | simple | sent 1x | by: UPDATE
-- result: CREATE TABLE
CREATE LOCAL TEMPORARY TABLE "update_data_<uuid>"("doc" VARCHAR, __page_id_string VARCHAR) ON COMMIT DROP;

-- [23] data | simple | sent 1x | by: UPDATE
-- result: COPY n
COPY "update_data_<uuid>" FROM STDIN (FORMAT TEXT, NULL '');

-- [24] data | simple | sent 1x | by: UPDATE
-- result: none seen
-- error on PostgreSQL: 42804 column "doc" is of type jsonb but expression is of type character varying
UPDATE "public"."orders" SET "doc" = "update_data_<uuid>"."doc" FROM "update_data_<uuid>" WHERE "orders".ctid=__page_id_string::TID;

-- [25] data | simple | sent 1x | by: DELETE
-- result: DELETE n
DELETE FROM "public".orders WHERE ctid IN ('(2,46)');

-- [26] data | simple | sent 1x | by: CREATE TABLE AS
-- result: CREATE TABLE
CREATE TABLE "public"."tmp_duck"("a" INTEGER, "b" VARCHAR);

-- [27] data | simple | sent 1x | by: CREATE TABLE AS
-- result: COPY n
COPY "public"."tmp_duck" FROM STDIN (FORMAT BINARY);

-- [28] data | extended | sent 1x | by: postgres_query
-- wire: only Parse/Describe
-- result: id text
select id from people limit 2;

-- [29] data | simple | sent 1x | by: postgres_query
-- result: COPY n
COPY (SELECT "id" FROM (select id from people limit 2) AS __unnamed_subquery ) TO STDOUT (FORMAT "binary");

-- [30] data | simple | sent 1x | by: postgres_scan
-- result: COPY n
COPY (SELECT "id", "doc" FROM "public"."people"  LIMIT 2) TO STDOUT (FORMAT "binary");

-- [31] data | simple | sent 1x | by: COPY
-- result: COPY n
COPY (SELECT "id", "doc" FROM "public"."people" WHERE ctid BETWEEN '(0,0)'::tid AND '(4294967295,0)'::tid) TO STDOUT (FORMAT "binary");
