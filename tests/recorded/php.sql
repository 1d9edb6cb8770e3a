-- php: PHP 8.2 PDO_pgsql and pgsql
-- 28 statements: 7 catalogue, 12 session, 9 data

-- [1] catalogue | simple | sent 2x | by: PDO getColumnMeta
-- result: relname name
SELECT RELNAME FROM PG_CLASS WHERE OID=<oid:people>;

-- [2] catalogue | simple | sent 1x | by: PDO getColumnMeta
-- result: typname name
SELECT TYPNAME FROM PG_TYPE WHERE OID=3802;

-- [3] catalogue | simple | sent 1x | by: pg_meta_data
-- result: attname name, attnum smallint, typname name, attlen smallint, attnotnull boolean, atthasdef boolean, attndims smallint, typtype "char"
SELECT a.attname, a.attnum, t.typname, a.attlen, a.attnotnull, a.atthasdef, a.attndims, t.typtype FROM pg_class as c  JOIN pg_attribute a ON (a.attrelid = c.oid)  JOIN pg_type t ON (a.atttypid = t.oid)  JOIN pg_namespace n ON (c.relnamespace = n.oid) WHERE a.attnum > 0 AND c.relname = 'people' AND n.nspname = 'public' ORDER BY a.attnum;

-- [4] catalogue | simple | sent 1x | by: pg_meta_data extended
-- result: attname name, attnum smallint, typname name, attlen smallint, attnotnull boolean, atthasdef boolean, attndims smallint, typtype "char", description text
SELECT a.attname, a.attnum, t.typname, a.attlen, a.attnotNULL, a.atthasdef, a.attndims, t.typtype, d.description FROM pg_class as c  JOIN pg_attribute a ON (a.attrelid = c.oid)  JOIN pg_type t ON (a.atttypid = t.oid)  JOIN pg_namespace n ON (c.relnamespace = n.oid)  LEFT JOIN pg_description d ON (d.objoid=a.attrelid AND d.objsubid=a.attnum AND c.oid=d.objoid) WHERE a.attnum > 0  AND c.relname = 'people' AND n.nspname = 'public' ORDER BY a.attnum;

-- [5] catalogue | simple | sent 6x | by: pg_insert/pg_select/pg_update/pg_delete; pg_convert
-- result: attname name, attnum smallint, typname name, attlen smallint, attnotnull boolean, atthasdef boolean, attndims smallint, typtype "char"
SELECT a.attname, a.attnum, t.typname, a.attlen, a.attnotnull, a.atthasdef, a.attndims, t.typtype FROM pg_class as c  JOIN pg_attribute a ON (a.attrelid = c.oid)  JOIN pg_type t ON (a.atttypid = t.oid)  JOIN pg_namespace n ON (c.relnamespace = n.oid) WHERE a.attnum > 0 AND c.relname = 'orders' AND n.nspname = 'public' ORDER BY a.attnum;

-- [6] catalogue | simple | sent 1x | by: pg_field_table, pg_field_type
-- result: relname name
select relname from pg_class where oid=<oid:people>;

-- [7] catalogue | simple | sent 1x | by: pg_field_table, pg_field_type
-- result: oid oid, typname name
select oid,typname from pg_type;

-- [8] session | extended | sent 2x | by: PDO query; PDO transaction
-- wire: named statement
-- result: ?column? integer
select 1;

-- [9] session | simple | sent 1x | by: PDO query
-- result: DEALLOCATE
DEALLOCATE pdo_stmt_00000001;

-- [10] session | simple | sent 1x | by: PDO transaction
-- result: BEGIN
BEGIN;

-- [11] session | simple | sent 1x | by: PDO transaction
-- result: DEALLOCATE
DEALLOCATE pdo_stmt_00000003;

-- [12] session | simple | sent 1x | by: PDO transaction
-- result: COMMIT
COMMIT;

-- [13] session | simple | sent 1x | by: PDO lastInsertId
-- result: lastval bigint
-- error on PostgreSQL: 55000 lastval is not yet defined in this session
SELECT LASTVAL();

-- [14] session | simple | sent 1x | by: PDO cursor
-- result: DEALLOCATE
DEALLOCATE pdo_stmt_00000002;

-- [15] session | simple | sent 1x | by: PDO cursor
-- result: DECLARE CURSOR
DECLARE pdo_crsr_00000004 SCROLL CURSOR WITH HOLD FOR select id from people;

-- [16] session | simple | sent 1x | by: PDO cursor
-- result: id text
FETCH FORWARD 0 FROM pdo_crsr_00000004;

-- [17] session | simple | sent 1x | by: PDO cursor
-- result: id text
FETCH NEXT FROM pdo_crsr_00000004;

-- [18] session | simple | sent 1x | by: PDO cursor
-- result: CLOSE CURSOR
CLOSE pdo_crsr_00000004;

-- [19] session | simple | sent 1x | by: pg_set_client_encoding
-- result: SET
set client_encoding to 'UTF8';

-- [20] data | extended | sent 1x | by: PDO prepare/execute
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: named statement
-- result: id text, doc jsonb
select id, doc from people where id=$1;

-- [21] data | simple | sent 1x | by: PDO emulate prepares
-- result: id text
select id from people where id='p1';

-- [22] data | extended | sent 1x | by: pg_query_params
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- result: id text
select id from people where id=$1;

-- [23] data | simple | sent 1x | by: pg_insert/pg_select/pg_update/pg_delete
-- result: INSERT n n
INSERT INTO "orders" ("id","doc") VALUES ('php1','{}');

-- [24] data | simple | sent 1x | by: pg_insert/pg_select/pg_update/pg_delete
-- result: id text, doc jsonb
SELECT * FROM "orders" WHERE "id"='php1';

-- [25] data | simple | sent 1x | by: pg_insert/pg_select/pg_update/pg_delete
-- result: UPDATE n
UPDATE "orders" SET "doc"='{}' WHERE "id"='php1';

-- [26] data | simple | sent 1x | by: pg_insert/pg_select/pg_update/pg_delete
-- result: DELETE n
DELETE FROM "orders" WHERE "id"='php1';

-- [27] data | simple | sent 1x | by: pg_field_table, pg_field_type
-- result: id text, doc jsonb
select id,doc from people limit 1;

-- [28] data | simple | sent 1x | by: pg_copy_to
-- result: COPY n
COPY orders TO STDOUT DELIMITER E'	' NULL AS E'\\N';
