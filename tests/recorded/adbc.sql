-- adbc: ADBC PostgreSQL 1.13.0
-- 29 statements: 15 catalogue, 6 session, 8 data

-- [1] catalogue | simple | sent 2x | by: connect
-- result: attrelid oid, attname name, atttypid oid
SELECT
    attrelid,
    attname,
    atttypid
FROM
    pg_catalog.pg_attribute
ORDER BY
    attrelid, attnum;

-- [2] catalogue | simple | sent 6x | by: connect
-- result: oid oid, typname name, typreceive regproc, typbasetype oid, typrelid oid, typarray oid
SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0) AND typtype != 'r' AND typreceive::TEXT != 'array_recv';

-- [3] catalogue | simple | sent 8x | by: adbc_get_objects depth=catalogs; adbc_get_objects depth=db_schemas; adbc_get_objects depth=tables; adbc_get_objects depth=all
-- result: datname name
SELECT datname FROM pg_catalog.pg_database;

-- [4] catalogue | simple | sent 6x | by: adbc_get_objects depth=db_schemas; adbc_get_objects depth=tables; adbc_get_objects depth=all
-- result: nspname name
SELECT nspname FROM pg_catalog.pg_namespace WHERE (nspname !~ '^pg_' OR oid = pg_my_temp_schema()) AND nspname <> 'information_schema';

-- [5] catalogue | extended | sent 4x | by: adbc_get_objects depth=tables; adbc_get_objects depth=all
-- parameters: $1 name (Parse says unspecified) = 'public', $2 "char"[] (Parse says unspecified) = '{"p", "f", "t", "m", "v", "r"}'
-- result: relname name, reltype text
SELECT c.relname, CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' END AS reltype FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = ANY($2);

-- [6] catalogue | extended | sent 6x | by: adbc_get_objects depth=all
-- parameters: $1 text (Parse says unspecified) = 'public', $2 text (Parse says unspecified) = 'adults'
-- result: attname name, attnum smallint, col_description text, typname name
SELECT attr.attname, attr.attnum, pg_catalog.col_description(cls.oid, attr.attnum), typ.typname FROM pg_catalog.pg_attribute AS attr INNER JOIN pg_catalog.pg_class AS cls ON attr.attrelid = cls.oid INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace INNER JOIN pg_catalog.pg_type AS typ ON attr.atttypid = typ.oid WHERE attr.attnum > 0 AND NOT attr.attisdropped AND nsp.nspname LIKE $1 AND cls.relname LIKE $2;

-- [7] catalogue | extended | sent 6x | by: adbc_get_objects depth=all
-- parameters: $1 name (Parse says unspecified) = 'public', $2 name (Parse says unspecified) = 'adults'
-- result: conname name, contype text, colnames name[], fschema name, ftable name, fcolnames name[]
WITH fk_unnest AS (     SELECT         con.conname,         'FOREIGN KEY' AS contype,         conrelid,         UNNEST(con.conkey) AS conkey,         confrelid,         UNNEST(con.confkey) AS confkey     FROM pg_catalog.pg_constraint AS con     INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = conrelid     INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace     WHERE con.contype = 'f' AND nsp.nspname = $1     AND cls.relname = $2 ), fk_names AS (     SELECT         fk_unnest.conname,         fk_unnest.contype,         fk_unnest.conkey,         fk_unnest.confkey,         attr.attname,         fnsp.nspname AS fschema,         fcls.relname AS ftable,         fattr.attname AS fattname     FROM fk_unnest     INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = fk_unnest.conrelid     INNER JOIN pg_catalog.pg_class AS fcls ON fcls.oid = fk_unnest.confrelid     INNER JOIN pg_catalog.pg_namespace AS fnsp ON fnsp.oid = fcls.relnamespace    INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = fk_unnest.conkey         AND attr.attrelid = fk_unnest.conrelid     LEFT JOIN pg_catalog.pg_attribute AS fattr ON fattr.attnum =  fk_unnest.confkey         AND fattr.attrelid = fk_unnest.confrelid ), fkeys AS (     SELECT         conname,         contype,         ARRAY_AGG(attname ORDER BY conkey) AS colnames,         fschema,         ftable,         ARRAY_AGG(fattname ORDER BY confkey) AS fcolnames     FROM fk_names     GROUP BY         conname,         contype,         fschema,         ftable ), other_constraints AS (     SELECT con.conname, CASE con.contype WHEN 'c' THEN 'CHECK' WHEN 'u' THEN      'UNIQUE' WHEN 'p' THEN 'PRIMARY KEY' END AS contype,     ARRAY_AGG(attr.attname) AS colnames     FROM pg_catalog.pg_constraint AS con      CROSS JOIN UNNEST(conkey) AS conkeys      INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = con.conrelid      INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace      INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = conkeys      AND cls.oid = attr.attrelid      WHERE con.contype IN ('c', 'u', 'p') AND nsp.nspname = $1     AND cls.relname = $2     GROUP BY conname, contype ) SELECT     conname, contype, colnames, fschema, ftable, fcolnames FROM fkeys UNION ALL SELECT     conname, contype, colnames, NULL, NULL, NULL FROM other_constraints;

-- [8] catalogue | extended | sent 2x | by: adbc_get_objects filters
-- parameters: $1 name (Parse says unspecified) = 'app'
-- result: datname name
SELECT datname FROM pg_catalog.pg_database WHERE datname = $1;

-- [9] catalogue | extended | sent 2x | by: adbc_get_objects filters
-- parameters: $1 name (Parse says unspecified) = 'public'
-- result: nspname name
SELECT nspname FROM pg_catalog.pg_namespace WHERE (nspname !~ '^pg_' OR oid = pg_my_temp_schema()) AND nspname <> 'information_schema' AND nspname = $1;

-- [10] catalogue | extended | sent 2x | by: adbc_get_objects filters
-- parameters: $1 name (Parse says unspecified) = 'public', $2 "char"[] (Parse says unspecified) = '{"r"}', $3 text (Parse says unspecified) = 'people'
-- result: relname name, reltype text
SELECT c.relname, CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' END AS reltype FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = ANY($2) AND c.relname LIKE $3;

-- [11] catalogue | extended | sent 2x | by: adbc_get_objects filters
-- parameters: $1 text (Parse says unspecified) = 'public', $2 text (Parse says unspecified) = 'people', $3 text (Parse says unspecified) = 'id'
-- result: attname name, attnum smallint, col_description text, typname name
SELECT attr.attname, attr.attnum, pg_catalog.col_description(cls.oid, attr.attnum), typ.typname FROM pg_catalog.pg_attribute AS attr INNER JOIN pg_catalog.pg_class AS cls ON attr.attrelid = cls.oid INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace INNER JOIN pg_catalog.pg_type AS typ ON attr.atttypid = typ.oid WHERE attr.attnum > 0 AND NOT attr.attisdropped AND nsp.nspname LIKE $1 AND cls.relname LIKE $2 AND attr.attname LIKE $3;

-- [12] catalogue | extended | sent 2x | by: adbc_get_objects filters
-- parameters: $1 name (Parse says unspecified) = 'public', $2 name (Parse says unspecified) = 'people', $3 text (Parse says unspecified) = 'id'
-- result: conname name, contype text, colnames name[], fschema name, ftable name, fcolnames name[]
WITH fk_unnest AS (     SELECT         con.conname,         'FOREIGN KEY' AS contype,         conrelid,         UNNEST(con.conkey) AS conkey,         confrelid,         UNNEST(con.confkey) AS confkey     FROM pg_catalog.pg_constraint AS con     INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = conrelid     INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace     WHERE con.contype = 'f' AND nsp.nspname = $1     AND cls.relname = $2 ), fk_names AS (     SELECT         fk_unnest.conname,         fk_unnest.contype,         fk_unnest.conkey,         fk_unnest.confkey,         attr.attname,         fnsp.nspname AS fschema,         fcls.relname AS ftable,         fattr.attname AS fattname     FROM fk_unnest     INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = fk_unnest.conrelid     INNER JOIN pg_catalog.pg_class AS fcls ON fcls.oid = fk_unnest.confrelid     INNER JOIN pg_catalog.pg_namespace AS fnsp ON fnsp.oid = fcls.relnamespace    INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = fk_unnest.conkey         AND attr.attrelid = fk_unnest.conrelid     LEFT JOIN pg_catalog.pg_attribute AS fattr ON fattr.attnum =  fk_unnest.confkey         AND fattr.attrelid = fk_unnest.confrelid ), fkeys AS (     SELECT         conname,         contype,         ARRAY_AGG(attname ORDER BY conkey) AS colnames,         fschema,         ftable,         ARRAY_AGG(fattname ORDER BY confkey) AS fcolnames     FROM fk_names     GROUP BY         conname,         contype,         fschema,         ftable ), other_constraints AS (     SELECT con.conname, CASE con.contype WHEN 'c' THEN 'CHECK' WHEN 'u' THEN      'UNIQUE' WHEN 'p' THEN 'PRIMARY KEY' END AS contype,     ARRAY_AGG(attr.attname) AS colnames     FROM pg_catalog.pg_constraint AS con      CROSS JOIN UNNEST(conkey) AS conkeys      INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = con.conrelid      INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace      INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = conkeys      AND cls.oid = attr.attrelid      WHERE con.contype IN ('c', 'u', 'p') AND nsp.nspname = $1     AND cls.relname = $2     GROUP BY conname, contype ) SELECT     conname, contype, colnames, fschema, ftable, fcolnames FROM fkeys UNION ALL SELECT     conname, contype, colnames, NULL, NULL, NULL FROM other_constraints WHERE conname LIKE $3;

-- [13] catalogue | extended | sent 4x | by: adbc_get_table_schema; adbc_get_table_schema(schema)
-- parameters: $1 regclass (Parse says unspecified) = '"people"'
-- result: attname name, atttypid oid
SELECT attname, atttypid FROM pg_catalog.pg_class AS cls INNER JOIN pg_catalog.pg_attribute AS attr ON cls.oid = attr.attrelid INNER JOIN pg_catalog.pg_type AS typ ON attr.atttypid = typ.oid WHERE attr.attnum >= 0 AND cls.oid = $1::regclass::oid ORDER BY attr.attnum;

-- [14] catalogue | extended | sent 2x | by: adbc_ingest append
-- parameters: $1 regclass (Parse says unspecified) = '"public" . "tmp_adbc"'
-- result: attname name, atttypid oid
SELECT attr.attname, attr.atttypid FROM pg_catalog.pg_attribute AS attr WHERE attr.attrelid = $1::regclass::oid AND attr.attnum > 0 AND NOT attr.attisdropped;

-- [15] catalogue | extended | sent 1x | by: adbc_get_statistics
-- parameters: $1 name (Parse says unspecified) = 'public', $2 text (Parse says unspecified) = '%'
-- result: tablename name, attname name, null_frac real, avg_width integer, n_distinct real, reltuples real
WITH
      class AS (
        SELECT nspname, relname, reltuples
        FROM pg_namespace
        INNER JOIN pg_class ON pg_class.relnamespace = pg_namespace.oid
      )
    SELECT tablename, attname, null_frac, avg_width, n_distinct, reltuples
    FROM pg_stats
    INNER JOIN class ON pg_stats.schemaname = class.nspname AND pg_stats.tablename = class.relname
    WHERE pg_stats.schemaname = $1 AND tablename LIKE $2
    ORDER BY tablename;

-- [16] session | simple | sent 2x | by: connect
-- result: version text
SELECT version();

-- [17] session | simple | sent 8x | by: execute + fetch_arrow_table; adbc_get_objects depth=catalogs; adbc_ingest append; adbc_ingest replace
-- result: BEGIN
BEGIN TRANSACTION;

-- [18] session | simple | sent 2x | by: commit
-- result: COMMIT
COMMIT;

-- [19] session | simple | sent 2x | by: adbc_get_info
-- result: server_version_num text
SHOW server_version_num;

-- [20] session | simple | sent 8x | by: adbc_current_catalog/schema; adbc_ingest create; adbc_ingest append; adbc_ingest replace
-- result: current_schema name
SELECT CURRENT_SCHEMA();

-- [21] session | simple | sent 2x | by: rollback
-- result: ROLLBACK
ROLLBACK;

-- [22] data | extended | sent 2x | by: execute + fetch_arrow_table
-- wire: only Parse/Describe
-- result: id text, doc jsonb
select id, doc from people;

-- [23] data | extended | sent 2x | by: execute + fetch_arrow_table
-- wire: binary results
-- result: COPY n
COPY (select id, doc from people) TO STDOUT (FORMAT binary);

-- [24] data | extended | sent 2x | by: execute with parameters
-- parameters: $1 text = 'p1'
-- wire: binary parameters, binary results
-- result: id text
select id from people where id=$1;

-- [25] data | extended | sent 2x | by: executemany
-- parameters: $1 text = 'k1'
-- wire: binary parameters, binary results
-- result: INSERT n n
insert into orders(id) values ($1) on conflict do nothing;

-- [26] data | extended | sent 4x | by: adbc_ingest create; adbc_ingest replace
-- wire: binary results
-- result: CREATE TABLE
CREATE TABLE "public" . "tmp_adbc" ("a" int8, "b" text);

-- [27] data | simple | sent 6x | by: adbc_ingest create; adbc_ingest append; adbc_ingest replace
-- result: COPY n
COPY "public" . "tmp_adbc" ("a", "b") FROM STDIN WITH (FORMAT binary);

-- [28] data | extended | sent 2x | by: adbc_ingest replace
-- wire: binary results
-- result: DROP TABLE
DROP TABLE IF EXISTS "public" . "tmp_adbc";

-- [29] data | extended | sent 2x | by: adbc_execute_schema
-- wire: only Parse/Describe
-- result: id text
select id from people;
