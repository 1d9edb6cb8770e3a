-- polars: polars 2.1.0 (ADBC)
-- 11 statements: 2 catalogue, 4 session, 5 data

-- [1] catalogue | simple | sent 2x | by: read_database_uri(adbc); write_database(adbc)
-- result: attrelid oid, attname name, atttypid oid
SELECT
    attrelid,
    attname,
    atttypid
FROM
    pg_catalog.pg_attribute
ORDER BY
    attrelid, attnum;

-- [2] catalogue | simple | sent 6x | by: read_database_uri(adbc); write_database(adbc)
-- result: oid oid, typname name, typreceive regproc, typbasetype oid, typrelid oid, typarray oid
SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0) AND typtype != 'r' AND typreceive::TEXT != 'array_recv';

-- [3] session | simple | sent 2x | by: read_database_uri(adbc); write_database(adbc)
-- result: version text
SELECT version();

-- [4] session | simple | sent 2x | by: read_database_uri(adbc); write_database(adbc)
-- result: BEGIN
BEGIN TRANSACTION;

-- [5] session | simple | sent 1x | by: write_database(adbc)
-- result: current_schema name
SELECT CURRENT_SCHEMA();

-- [6] session | simple | sent 1x | by: write_database(adbc)
-- result: COMMIT
COMMIT;

-- [7] data | extended | sent 1x | by: read_database_uri(adbc)
-- wire: only Parse/Describe
-- result: id text, doc jsonb
select id, doc from people;

-- [8] data | extended | sent 1x | by: read_database_uri(adbc)
-- wire: binary results
-- result: COPY n
COPY (select id, doc from people) TO STDOUT (FORMAT binary);

-- [9] data | extended | sent 1x | by: write_database(adbc)
-- wire: binary results
-- result: DROP TABLE
DROP TABLE IF EXISTS "public" . "tmp_pl";

-- [10] data | extended | sent 1x | by: write_database(adbc)
-- wire: binary results
-- result: CREATE TABLE
CREATE TABLE "public" . "tmp_pl" ("a" int8);

-- [11] data | simple | sent 1x | by: write_database(adbc)
-- result: COPY n
COPY "public" . "tmp_pl" ("a") FROM STDIN WITH (FORMAT binary);
