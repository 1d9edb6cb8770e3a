-- activerecord: ActiveRecord of Debian (6.1.7.10)
-- 90 statements: 24 catalogue, 29 session, 37 data

-- [1] catalogue | extended | sent 4x | by: connect; MigrationContext; types: columns of custom types
-- result: oid oid, typname name
SELECT t.oid, t.typname
FROM pg_type as t
WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool', 'timestamp', 'timestamptz');

-- [2] catalogue | extended | sent 4x | by: connect; MigrationContext; types: columns of custom types
-- result: oid oid, typname name, typelem oid, typdelim "char", typinput regproc, rngsubtype oid, typtype "char", typbasetype oid
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type as t
LEFT JOIN pg_range as r ON oid = rngtypid
WHERE
  t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'text', 'varchar', 'char', 'name', 'bpchar', 'bool', 'bit', 'varbit', 'timestamptz', 'date', 'money', 'bytea', 'point', 'hstore', 'json', 'jsonb', 'cidr', 'inet', 'uuid', 'xml', 'tsvector', 'macaddr', 'citext', 'ltree', 'line', 'lseg', 'box', 'path', 'polygon', 'circle', 'time', 'timestamp', 'numeric', 'interval')
  OR t.typtype IN ('r', 'e', 'd')
  OR t.typinput = 'array_in(cstring,oid,integer)'::regprocedure
  OR t.typelem != 0;

-- [3] catalogue | simple | sent 8x | by: Model.columns; connection.columns(people); SchemaDumper; create_table migration; MigrationContext; … (6 actions)
-- result: attname name, format_type text, pg_get_expr text, attnotnull boolean, atttypid oid, atttypmod integer, collname name, comment text
SELECT a.attname, format_type(a.atttypid, a.atttypmod),
       pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod,
       c.collname, col_description(a.attrelid, a.attnum) AS comment
  FROM pg_attribute a
  LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum
  LEFT JOIN pg_type t ON a.atttypid = t.oid
  LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation
 WHERE a.attrelid = '"orders"'::regclass
   AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum;

-- [4] catalogue | simple | sent 6x | by: Model.find; connection.tables; connection.views; connection.data_sources; SchemaDumper; … (6 actions)
-- result: relname name
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','v','m','p','f');

-- [5] catalogue | simple | sent 6x | by: Model.find; connection.primary_keys(people); connection.primary_key(people); SchemaDumper; types: columns of custom types
-- result: attname name
SELECT a.attname
  FROM (
         SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx
           FROM pg_index
          WHERE indrelid = '"orders"'::regclass
            AND indisprimary
       ) i
  JOIN pg_attribute a
    ON a.attrelid = i.indrelid
   AND a.attnum = i.indkey[i.idx]
 ORDER BY i.idx;

-- [6] catalogue | simple | sent 5x | by: insert_all; connection.indexes(people); SchemaDumper; create_table migration
-- result: relname name, indisunique boolean, indkey int2vector, pg_get_indexdef text, oid oid, comment text
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), t.oid,
                pg_catalog.obj_description(i.oid, 'pg_class') AS comment
FROM pg_class t
INNER JOIN pg_index d ON t.oid = d.indrelid
INNER JOIN pg_class i ON d.indexrelid = i.oid
LEFT JOIN pg_namespace n ON n.oid = i.relnamespace
WHERE i.relkind IN ('i', 'I')
  AND d.indisprimary = 'f'
  AND t.relname = 'orders'
  AND n.nspname = ANY (current_schemas(false))
ORDER BY i.relname;

-- [7] catalogue | extended | sent 2x | by: connection.extensions; SchemaDumper
-- result: extname name
SELECT extname FROM pg_extension;

-- [8] catalogue | simple | sent 1x | by: connection.schema_names
-- result: nspname name
SELECT nspname
  FROM pg_namespace
 WHERE nspname !~ '^pg_.*'
   AND nspname NOT IN ('information_schema')
 ORDER by nspname;

-- [9] catalogue | simple | sent 1x | by: connection.encoding
-- result: pg_encoding_to_char name
SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database();

-- [10] catalogue | simple | sent 1x | by: connection.collation
-- result: datcollate text
SELECT datcollate FROM pg_database WHERE datname = current_database();

-- [11] catalogue | simple | sent 1x | by: connection.ctype
-- result: datctype text
SELECT datctype FROM pg_database WHERE datname = current_database();

-- [12] catalogue | extended | sent 3x | by: connection.foreign_keys(people); SchemaDumper
-- result: to_table text, column name, primary_key name, name name, on_update "char", on_delete "char", valid boolean
SELECT t2.oid::regclass::text AS to_table, a1.attname AS column, a2.attname AS primary_key, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete, c.convalidated AS valid
FROM pg_constraint c
JOIN pg_class t1 ON c.conrelid = t1.oid
JOIN pg_class t2 ON c.confrelid = t2.oid
JOIN pg_attribute a1 ON a1.attnum = c.conkey[1] AND a1.attrelid = t1.oid
JOIN pg_attribute a2 ON a2.attnum = c.confkey[1] AND a2.attrelid = t2.oid
JOIN pg_namespace t3 ON c.connamespace = t3.oid
WHERE c.contype = 'f'
  AND t1.relname = 'people'
  AND t3.nspname = ANY (current_schemas(false))
ORDER BY c.conname;

-- [13] catalogue | extended | sent 3x | by: connection.check_constraints(people); SchemaDumper
-- result: conname name, constraintdef text, valid boolean
SELECT conname, pg_get_constraintdef(c.oid) AS constraintdef, c.convalidated AS valid
            FROM pg_constraint c
            JOIN pg_class t ON c.conrelid = t.oid
            WHERE c.contype = 'c'
              AND t.relname = 'people';

-- [14] catalogue | simple | sent 4x | by: connection.table_comment(people); connection.table_options(people); SchemaDumper
-- result: obj_description text
SELECT pg_catalog.obj_description(c.oid, 'pg_class')
FROM pg_catalog.pg_class c
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'people'
  AND c.relkind IN ('r','p')
  AND n.nspname = ANY (current_schemas(false));

-- [15] catalogue | simple | sent 1x | by: connection.pk_and_sequence_for(people)
-- result: attname name, nspname name, relname name
SELECT attr.attname, nsp.nspname, seq.relname
FROM pg_class      seq,
     pg_attribute  attr,
     pg_depend     dep,
     pg_constraint cons,
     pg_namespace  nsp
WHERE seq.oid           = dep.objid
  AND seq.relkind       = 'S'
  AND attr.attrelid     = dep.refobjid
  AND attr.attnum       = dep.refobjsubid
  AND attr.attrelid     = cons.conrelid
  AND attr.attnum       = cons.conkey[1]
  AND seq.relnamespace  = nsp.oid
  AND cons.contype      = 'p'
  AND dep.classid       = 'pg_class'::regclass
  AND dep.refobjid      = '"people"'::regclass;

-- [16] catalogue | simple | sent 1x | by: connection.pk_and_sequence_for(people)
-- result: attname name, nspname name, split_part text
SELECT attr.attname, nsp.nspname,
  CASE
    WHEN pg_get_expr(def.adbin, def.adrelid) !~* 'nextval' THEN NULL
    WHEN split_part(pg_get_expr(def.adbin, def.adrelid), '''', 2) ~ '.' THEN
      substr(split_part(pg_get_expr(def.adbin, def.adrelid), '''', 2),
             strpos(split_part(pg_get_expr(def.adbin, def.adrelid), '''', 2), '.')+1)
    ELSE split_part(pg_get_expr(def.adbin, def.adrelid), '''', 2)
  END
FROM pg_class       t
JOIN pg_attribute   attr ON (t.oid = attrelid)
JOIN pg_attrdef     def  ON (adrelid = attrelid AND adnum = attnum)
JOIN pg_constraint  cons ON (conrelid = adrelid AND adnum = conkey[1])
JOIN pg_namespace   nsp  ON (t.relnamespace = nsp.oid)
WHERE t.oid = '"people"'::regclass
  AND cons.contype = 'p'
  AND pg_get_expr(def.adbin, def.adrelid) ~* 'nextval|uuid_generate';

-- [17] catalogue | simple | sent 1x | by: connection.default_sequence_name(people)
-- result: pg_get_serial_sequence text
SELECT pg_get_serial_sequence('people', 'id');

-- [18] catalogue | simple | sent 13x | by: connection.table_exists?(people); connection.data_source_exists?(people); connection.view_exists?(people); SchemaDumper; create_table migration; … (6 actions)
-- result: relname name
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relname = 'people' AND c.relkind IN ('r','p');

-- [19] catalogue | simple | sent 1x | by: schema_exists?
-- result: count bigint
SELECT COUNT(*) FROM pg_namespace WHERE nspname = 'public';

-- [20] catalogue | simple | sent 1x | by: index_name_exists?
-- result: count bigint
SELECT COUNT(*)
FROM pg_class t
INNER JOIN pg_index d ON t.oid = d.indrelid
INNER JOIN pg_class i ON d.indexrelid = i.oid
LEFT JOIN pg_namespace n ON n.oid = i.relnamespace
WHERE i.relkind IN ('i', 'I')
  AND i.relname = 'people_city'
  AND t.relname = 'people'
  AND n.nspname = ANY (current_schemas(false));

-- [21] catalogue | simple | sent 1x | by: extension_enabled?
-- result: ?column? boolean
SELECT installed_version IS NOT NULL FROM pg_available_extensions WHERE name = 'hstore';

-- [22] catalogue | simple | sent 1x | by: create_table migration
-- result: oid oid
SELECT 'integer'::regtype::oid;

-- [23] catalogue | simple | sent 1x | by: create_table migration
-- result: attnum smallint, attname name
SELECT a.attnum, a.attname
FROM pg_attribute a
WHERE a.attrelid = <oid>
AND a.attnum IN (2);

-- [24] catalogue | extended | sent 2x | by: types: columns of custom types
-- result: oid oid, typname name, typelem oid, typdelim "char", typinput regproc, rngsubtype oid, typtype "char", typbasetype oid
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type as t
LEFT JOIN pg_range as r ON oid = rngtypid
WHERE t.oid IN (<oid:row type of point2>);

-- [25] session | simple | sent 5x | by: connect; MigrationContext; active?/reset!; types: columns of custom types
-- result: SET
SET client_min_messages TO 'warning';

-- [26] session | simple | sent 5x | by: connect; MigrationContext; active?/reset!; types: columns of custom types
-- result: SET
SET standard_conforming_strings = on;

-- [27] session | simple | sent 5x | by: connect; MigrationContext; active?/reset!; types: columns of custom types
-- result: SET
SET intervalstyle = iso_8601;

-- [28] session | simple | sent 5x | by: connect; MigrationContext; active?/reset!; types: columns of custom types
-- result: SET
SET SESSION timezone TO 'UTC';

-- [29] session | simple | sent 4x | by: connect; MigrationContext; types: columns of custom types
-- result: TimeZone text
SHOW TIME ZONE;

-- [30] session | simple | sent 8x | by: connect; MigrationContext; active?/reset!; types: columns of custom types
-- result: ?column? integer
SELECT 1;

-- [31] session | simple | sent 1x | by: Model.find
-- result: search_path text
SHOW search_path;

-- [32] session | simple | sent 9x | by: create; update; transaction; nested; lock; … (8 actions)
-- result: BEGIN
BEGIN;

-- [33] session | simple | sent 9x | by: create; update; transaction; nested; lock; … (8 actions)
-- result: COMMIT
COMMIT;

-- [34] session | simple | sent 1x | by: transaction
-- result: SET
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [35] session | simple | sent 1x | by: nested
-- result: SAVEPOINT
SAVEPOINT active_record_1;

-- [36] session | simple | sent 1x | by: nested
-- result: RELEASE
RELEASE SAVEPOINT active_record_1;

-- [37] session | simple | sent 3x | by: connection.current_database; MigrationContext
-- result: current_database name
SELECT current_database();

-- [38] session | simple | sent 1x | by: connection.current_schema
-- result: current_schema name
SELECT current_schema;

-- [39] session | simple | sent 1x | by: connection.client_min_messages
-- result: client_min_messages text
SHOW client_min_messages;

-- [40] session | simple | sent 2x | by: connection.max_identifier_length; types: columns of custom types
-- result: max_identifier_length text
SHOW max_identifier_length;

-- [41] session | simple | sent 1x | by: get_advisory_lock
-- result: pg_try_advisory_lock boolean
SELECT pg_try_advisory_lock(5);

-- [42] session | simple | sent 1x | by: get_advisory_lock
-- result: pg_advisory_unlock boolean
SELECT pg_advisory_unlock(5);

-- [43] session | simple | sent 1x | by: create_table migration
-- result: DEALLOCATE
DEALLOCATE a1;

-- [44] session | simple | sent 1x | by: create_table migration
-- result: DEALLOCATE
DEALLOCATE a2;

-- [45] session | simple | sent 1x | by: create_table migration
-- result: DEALLOCATE
DEALLOCATE a3;

-- [46] session | simple | sent 1x | by: create_table migration
-- result: DEALLOCATE
DEALLOCATE a4;

-- [47] session | simple | sent 1x | by: create_table migration
-- result: DEALLOCATE
DEALLOCATE a5;

-- [48] session | simple | sent 2x | by: MigrationContext
-- result: pg_try_advisory_lock boolean
SELECT pg_try_advisory_lock(<n>);

-- [49] session | simple | sent 2x | by: MigrationContext
-- result: pg_advisory_unlock boolean
SELECT pg_advisory_unlock(<n>);

-- [50] session | simple | sent 1x | by: active?/reset!
-- result: DEALLOCATE
DEALLOCATE a6;

-- [51] session | simple | sent 1x | by: active?/reset!
-- result: DISCARD ALL
DISCARD ALL;

-- [52] session | simple | sent 1x | by: types: columns of custom types
-- result: SET
SET search_path TO public;

-- [53] session | simple | sent 1x | by: types: columns of custom types
-- result: SET
SET SESSION statement_timeout TO 5000;

-- [54] data | extended | sent 1x | by: Model.find
-- parameters: $1 text (Parse says unspecified) = 'o1', $2 bigint (Parse says unspecified) = '1'
-- wire: named statement
-- result: id text, doc jsonb
SELECT "orders".* FROM "orders" WHERE "orders"."id" = $1 LIMIT $2;

-- [55] data | extended | sent 1x | by: where.limit
-- parameters: $1 text (Parse says unspecified) = 'o1', $2 bigint (Parse says unspecified) = '3'
-- wire: named statement
-- result: id text, doc jsonb
SELECT "orders".* FROM "orders" WHERE "orders"."id" = $1 ORDER BY "orders"."id" DESC LIMIT $2;

-- [56] data | extended | sent 1x | by: where in
-- parameters: $1 text (Parse says unspecified) = 'o1', $2 text (Parse says unspecified) = 'o2'
-- result: id text
SELECT "orders"."id" FROM "orders" WHERE "orders"."id" IN ($1, $2);

-- [57] data | extended | sent 1x | by: json where
-- result: count bigint
SELECT COUNT(*) FROM "orders" WHERE (doc->>'person'='p1');

-- [58] data | extended | sent 1x | by: create
-- parameters: $1 text (Parse says unspecified) = 'ar1', $2 jsonb (Parse says unspecified) = '{"a":1}'
-- result: id text
INSERT INTO "orders" ("id", "doc") VALUES ($1, $2) RETURNING "id";

-- [59] data | extended | sent 1x | by: insert_all
-- result: id text
INSERT INTO "orders" ("id") VALUES ('ar2'), ('ar3') ON CONFLICT  DO NOTHING RETURNING "id";

-- [60] data | extended | sent 1x | by: upsert_all
-- result: id text
INSERT INTO "orders" ("id","doc") VALUES ('ar2', '{}') ON CONFLICT ("id") DO UPDATE SET "doc"=excluded."doc" RETURNING "id";

-- [61] data | extended | sent 1x | by: update
-- parameters: $1 jsonb (Parse says unspecified) = '{"b":1}', $2 text (Parse says unspecified) = 'ar1'
-- result: UPDATE n
UPDATE "orders" SET "doc" = $1 WHERE "orders"."id" = $2;

-- [62] data | extended | sent 1x | by: delete
-- parameters: $1 text (Parse says unspecified) = 'ar1', $2 text (Parse says unspecified) = 'ar2', $3 text (Parse says unspecified) = 'ar3'
-- result: DELETE n
DELETE FROM "orders" WHERE "orders"."id" IN ($1, $2, $3);

-- [63] data | extended | sent 1x | by: find_each
-- parameters: $1 bigint (Parse says unspecified) = '100'
-- wire: named statement
-- result: id text, doc jsonb
SELECT "orders".* FROM "orders" ORDER BY "orders"."id" ASC LIMIT $1;

-- [64] data | extended | sent 1x | by: find_each
-- parameters: $1 text (Parse says unspecified) = 'o182', $2 bigint (Parse says unspecified) = '100'
-- wire: named statement
-- result: id text, doc jsonb
SELECT "orders".* FROM "orders" WHERE "orders"."id" > $1 ORDER BY "orders"."id" ASC LIMIT $2;

-- [65] data | extended | sent 2x | by: transaction; nested
-- result: count bigint
SELECT COUNT(*) FROM "orders";

-- [66] data | extended | sent 1x | by: exists?
-- parameters: $1 text (Parse says unspecified) = 'o1', $2 bigint (Parse says unspecified) = '1'
-- result: one integer
SELECT 1 AS one FROM "orders" WHERE "orders"."id" = $1 LIMIT $2;

-- [67] data | extended | sent 1x | by: lock
-- parameters: $1 text (Parse says unspecified) = 'o1', $2 bigint (Parse says unspecified) = '1'
-- result: id text, doc jsonb
SELECT "orders".* FROM "orders" WHERE "orders"."id" = $1 LIMIT $2 FOR UPDATE;

-- [68] data | extended | sent 1x | by: explain
-- parameters: $1 text (Parse says unspecified) = 'o1'
-- wire: named statement
-- result: id text, doc jsonb
SELECT "orders".* FROM "orders" WHERE "orders"."id" = $1;

-- [69] data | extended | sent 1x | by: explain
-- parameters: $1 text (Parse says unspecified) = 'o1'
-- result: QUERY PLAN text
EXPLAIN SELECT "orders".* FROM "orders" WHERE "orders"."id" = $1;

-- [70] data | simple | sent 1x | by: create_table migration
-- result: DROP TABLE
DROP TABLE IF EXISTS "tmp_ar";

-- [71] data | simple | sent 1x | by: create_table migration
-- result: CREATE TABLE
CREATE TABLE "tmp_ar" ("id" bigserial primary key, "a" character varying, "j" jsonb, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL);

-- [72] data | simple | sent 1x | by: create_table migration
-- result: CREATE INDEX
CREATE INDEX "index_tmp_ar_on_a" ON "tmp_ar" ("a");

-- [73] data | simple | sent 1x | by: create_table migration
-- result: ALTER TABLE
ALTER TABLE "tmp_ar" ADD "z" integer DEFAULT 3;

-- [74] data | simple | sent 1x | by: create_table migration
-- result: UPDATE n
UPDATE "tmp_ar" SET "a"='' WHERE "a" IS NULL;

-- [75] data | simple | sent 1x | by: create_table migration
-- result: ALTER TABLE
ALTER TABLE "tmp_ar" ALTER COLUMN "a" SET NOT NULL;

-- [76] data | simple | sent 1x | by: create_table migration
-- result: ALTER TABLE
ALTER TABLE "tmp_ar" RENAME COLUMN "z" TO "zz";

-- [77] data | simple | sent 1x | by: create_table migration
-- result: CREATE INDEX
CREATE INDEX "zi" ON "tmp_ar" ("zz");

-- [78] data | simple | sent 1x | by: create_table migration
-- result: DROP INDEX
DROP INDEX  "zi";

-- [79] data | simple | sent 1x | by: create_table migration
-- result: DROP TABLE
DROP TABLE "tmp_ar";

-- [80] data | simple | sent 1x | by: create_table migration
-- result: CREATE TABLE
CREATE TABLE "ar_internal_metadata" ("key" character varying NOT NULL PRIMARY KEY, "value" character varying, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL);

-- [81] data | extended | sent 1x | by: create_table migration
-- parameters: $1 unspecified = 'environment', $2 unspecified = '1'
-- wire: named statement
-- result: key character varying, value character varying, created_at timestamp without time zone, updated_at timestamp without time zone
SELECT "ar_internal_metadata".* FROM "ar_internal_metadata" WHERE "ar_internal_metadata"."key" = $1 LIMIT $2;

-- [82] data | extended | sent 1x | by: create_table migration
-- parameters: $1 unspecified = 'environment', $2 unspecified = 'default_env', $3 unspecified = '<timestamp>', $4 unspecified = '<timestamp>'
-- result: key character varying
INSERT INTO "ar_internal_metadata" ("key", "value", "created_at", "updated_at") VALUES ($1, $2, $3, $4) RETURNING "key";

-- [83] data | simple | sent 1x | by: MigrationContext
-- result: CREATE TABLE
CREATE TABLE "schema_migrations" ("version" character varying NOT NULL PRIMARY KEY);

-- [84] data | extended | sent 5x | by: MigrationContext
-- result: version character varying
SELECT "schema_migrations"."version" FROM "schema_migrations" ORDER BY "schema_migrations"."version" ASC;

-- [85] data | simple | sent 1x | by: MigrationContext
-- result: CREATE TABLE
CREATE TABLE "tmp_ar2" ("id" bigserial primary key);

-- [86] data | extended | sent 1x | by: MigrationContext
-- parameters: $1 unspecified = '1'
-- result: version character varying
INSERT INTO "schema_migrations" ("version") VALUES ($1) RETURNING "version";

-- [87] data | simple | sent 1x | by: MigrationContext
-- result: DROP TABLE
DROP TABLE "tmp_ar2";

-- [88] data | extended | sent 1x | by: MigrationContext
-- parameters: $1 unspecified = '1'
-- result: DELETE n
DELETE FROM "schema_migrations" WHERE "schema_migrations"."version" = $1;

-- [89] data | extended | sent 1x | by: types: columns of custom types
-- parameters: $1 bigint (Parse says unspecified) = '1'
-- wire: named statement
-- result: id integer, m mood, p point2, h hstore, d deep
SELECT "t".* FROM "t" ORDER BY "t"."id" ASC LIMIT $1;

-- [90] data | extended | sent 1x | by: types: columns of custom types
-- parameters: $1 mood (Parse says unspecified) = 'ok'
-- result: id integer
INSERT INTO "t" ("m") VALUES ($1) RETURNING "id";
