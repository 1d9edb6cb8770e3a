-- typeorm: typeorm 1.1.1
-- 44 statements: 19 catalogue, 6 session, 19 data

-- [1] catalogue | simple | sent 2x | by: synchronize; synchronize (second)
-- result: table_schema name, table_name name, table_comment text
SELECT "table_schema", "table_name", obj_description((quote_ident("table_schema") || '.' || quote_ident("table_name"))::regclass, 'pg_class') AS table_comment FROM "information_schema"."tables" WHERE ("table_schema" = 'public' AND "table_name" = 'orders') OR ("table_schema" = 'public' AND "table_name" = 'tmp_ty');

-- [2] catalogue | simple | sent 4x | by: synchronize; synchronize (second); queryRunner introspection
-- result: ?column? boolean
SELECT TRUE FROM information_schema.columns WHERE table_name = 'pg_class' and column_name = 'relispartition';

-- [3] catalogue | simple | sent 2x | by: synchronize; queryRunner introspection
-- result: table_catalog name, table_schema name, table_name name, column_name name, ordinal_position integer, column_default character varying, is_nullable character varying, data_type character varying, character_maximum_length integer, character_octet_length integer, numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type character varying, interval_precision integer, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality integer, dtd_identifier name, is_self_referencing character varying, is_identity character varying, identity_generation character varying, identity_start character varying, identity_increment character varying, identity_maximum character varying, identity_minimum character varying, identity_cycle character varying, is_generated character varying, generation_expression character varying, is_updatable character varying, description text, regtype text, format_type text
SELECT columns.*, pg_catalog.col_description((quote_ident(table_catalog) || '.' || quote_ident(table_schema) || '.' || quote_ident(table_name))::regclass::oid, ordinal_position) AS description, ('"' || "udt_schema" || '"."' || "udt_name" || '"')::"regtype"::text AS "regtype", pg_catalog.format_type("col_attr"."atttypid", "col_attr"."atttypmod") AS "format_type" FROM "information_schema"."columns" LEFT JOIN "pg_catalog"."pg_attribute" AS "col_attr" ON "col_attr"."attname" = "columns"."column_name" AND "col_attr"."attrelid" = ( SELECT "cls"."oid" FROM "pg_catalog"."pg_class" AS "cls" LEFT JOIN "pg_catalog"."pg_namespace" AS "ns" ON "ns"."oid" = "cls"."relnamespace" WHERE "cls"."relname" = "columns"."table_name" AND "ns"."nspname" = "columns"."table_schema" ) WHERE ("table_schema" = 'public' AND "table_name" = 'orders');

-- [4] catalogue | simple | sent 2x | by: synchronize; queryRunner introspection
-- result: table_schema name, table_name name, constraint_name name, expression text, constraint_type text, column_name name
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "cnst"."conname" AS "constraint_name", pg_get_constraintdef("cnst"."oid") AS "expression", CASE "cnst"."contype" WHEN 'p' THEN 'PRIMARY' WHEN 'u' THEN 'UNIQUE' WHEN 'c' THEN 'CHECK' WHEN 'x' THEN 'EXCLUDE' END AS "constraint_type", "a"."attname" AS "column_name" FROM "pg_constraint" "cnst" INNER JOIN "pg_class" "t" ON "t"."oid" = "cnst"."conrelid" INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "cnst"."connamespace" LEFT JOIN "pg_attribute" "a" ON "a"."attrelid" = "cnst"."conrelid" AND "a"."attnum" = ANY ("cnst"."conkey") WHERE "t"."relkind" IN ('r', 'p') AND (("ns"."nspname" = 'public' AND "t"."relname" = 'orders'));

-- [5] catalogue | simple | sent 2x | by: synchronize; queryRunner introspection
-- result: table_schema name, table_name name, constraint_name name, column_name name, is_unique text, condition text, type_name name, index_type name
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "i"."relname" AS "constraint_name", "a"."attname" AS "column_name", CASE "ix"."indisunique" WHEN 't' THEN 'TRUE' ELSE'FALSE' END AS "is_unique", pg_get_expr("ix"."indpred", "ix"."indrelid") AS "condition", "types"."typname" AS "type_name", "am"."amname" AS "index_type" FROM "pg_class" "t" INNER JOIN "pg_index" "ix" ON "ix"."indrelid" = "t"."oid" INNER JOIN "pg_attribute" "a" ON "a"."attrelid" = "t"."oid"  AND "a"."attnum" = ANY ("ix"."indkey") INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "t"."relnamespace" INNER JOIN "pg_class" "i" ON "i"."oid" = "ix"."indexrelid" INNER JOIN "pg_type" "types" ON "types"."oid" = "a"."atttypid" INNER JOIN "pg_am" "am" ON "i"."relam" = "am"."oid" LEFT JOIN "pg_constraint" "cnst" ON "cnst"."conname" = "i"."relname" WHERE "t"."relkind" IN ('r', 'p') AND "cnst"."contype" IS NULL AND (("ns"."nspname" = 'public' AND "t"."relname" = 'orders'));

-- [6] catalogue | simple | sent 2x | by: synchronize; queryRunner introspection
-- result: constraint_name name, table_schema name, table_name name, column_name name, referenced_table_schema name, referenced_table_name name, referenced_column_name name, on_delete text, on_update text, deferrable boolean, deferred text
SELECT "con"."conname" AS "constraint_name", "con"."nspname" AS "table_schema", "con"."relname" AS "table_name", "att2"."attname" AS "column_name", "ns"."nspname" AS "referenced_table_schema", "cl"."relname" AS "referenced_table_name", "att"."attname" AS "referenced_column_name", "con"."confdeltype" AS "on_delete", "con"."confupdtype" AS "on_update", "con"."condeferrable" AS "deferrable", "con"."condeferred" AS "deferred" FROM ( SELECT UNNEST ("con1"."conkey") AS "parent", UNNEST ("con1"."confkey") AS "child", "con1"."confrelid", "con1"."conrelid", "con1"."conname", "con1"."contype", "ns"."nspname", "cl"."relname", "con1"."condeferrable", CASE WHEN "con1"."condeferred" THEN 'INITIALLY DEFERRED' ELSE 'INITIALLY IMMEDIATE' END as condeferred, CASE "con1"."confdeltype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confdeltype", CASE "con1"."confupdtype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confupdtype" FROM "pg_class" "cl" INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_constraint" "con1" ON "con1"."conrelid" = "cl"."oid" WHERE "con1"."contype" = 'f' AND (("ns"."nspname" = 'public' AND "cl"."relname" = 'orders')) ) "con" INNER JOIN "pg_attribute" "att" ON "att"."attrelid" = "con"."confrelid" AND "att"."attnum" = "con"."child" INNER JOIN "pg_class" "cl" ON "cl"."oid" = "con"."confrelid"  AND "cl"."relispartition" = 'f'INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_attribute" "att2" ON "att2"."attrelid" = "con"."conrelid" AND "att2"."attnum" = "con"."parent";

-- [7] catalogue | extended | sent 6x | by: synchronize; synchronize (second); queryRunner introspection; runMigrations; showMigrations
-- parameters: $1 name (Parse says unspecified) = 'public', $2 name (Parse says unspecified) = 'typeorm_metadata'
-- result: table_catalog name, table_schema name, table_name name, table_type character varying, self_referencing_column_name name, reference_generation character varying, user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name name, is_insertable_into character varying, is_typed character varying, commit_action character varying
SELECT * FROM "information_schema"."tables" WHERE "table_schema" = $1 AND "table_name" = $2;

-- [8] catalogue | simple | sent 1x | by: synchronize
-- result: nspname name, typname name
SELECT "n"."nspname", "t"."typname" FROM "pg_type" "t" INNER JOIN "pg_namespace" "n" ON "n"."oid" = "t"."typnamespace" WHERE "n"."nspname" = 'public' AND "t"."typname" = 'tmp_ty_e_enum';

-- [9] catalogue | simple | sent 2x | by: synchronize (second); queryRunner introspection
-- result: table_catalog name, table_schema name, table_name name, column_name name, ordinal_position integer, column_default character varying, is_nullable character varying, data_type character varying, character_maximum_length integer, character_octet_length integer, numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type character varying, interval_precision integer, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality integer, dtd_identifier name, is_self_referencing character varying, is_identity character varying, identity_generation character varying, identity_start character varying, identity_increment character varying, identity_maximum character varying, identity_minimum character varying, identity_cycle character varying, is_generated character varying, generation_expression character varying, is_updatable character varying, description text, regtype text, format_type text
SELECT columns.*, pg_catalog.col_description((quote_ident(table_catalog) || '.' || quote_ident(table_schema) || '.' || quote_ident(table_name))::regclass::oid, ordinal_position) AS description, ('"' || "udt_schema" || '"."' || "udt_name" || '"')::"regtype"::text AS "regtype", pg_catalog.format_type("col_attr"."atttypid", "col_attr"."atttypmod") AS "format_type" FROM "information_schema"."columns" LEFT JOIN "pg_catalog"."pg_attribute" AS "col_attr" ON "col_attr"."attname" = "columns"."column_name" AND "col_attr"."attrelid" = ( SELECT "cls"."oid" FROM "pg_catalog"."pg_class" AS "cls" LEFT JOIN "pg_catalog"."pg_namespace" AS "ns" ON "ns"."oid" = "cls"."relnamespace" WHERE "cls"."relname" = "columns"."table_name" AND "ns"."nspname" = "columns"."table_schema" ) WHERE ("table_schema" = 'public' AND "table_name" = 'orders') OR ("table_schema" = 'public' AND "table_name" = 'tmp_ty');

-- [10] catalogue | simple | sent 2x | by: synchronize (second); queryRunner introspection
-- result: table_schema name, table_name name, constraint_name name, expression text, constraint_type text, column_name name
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "cnst"."conname" AS "constraint_name", pg_get_constraintdef("cnst"."oid") AS "expression", CASE "cnst"."contype" WHEN 'p' THEN 'PRIMARY' WHEN 'u' THEN 'UNIQUE' WHEN 'c' THEN 'CHECK' WHEN 'x' THEN 'EXCLUDE' END AS "constraint_type", "a"."attname" AS "column_name" FROM "pg_constraint" "cnst" INNER JOIN "pg_class" "t" ON "t"."oid" = "cnst"."conrelid" INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "cnst"."connamespace" LEFT JOIN "pg_attribute" "a" ON "a"."attrelid" = "cnst"."conrelid" AND "a"."attnum" = ANY ("cnst"."conkey") WHERE "t"."relkind" IN ('r', 'p') AND (("ns"."nspname" = 'public' AND "t"."relname" = 'orders') OR ("ns"."nspname" = 'public' AND "t"."relname" = 'tmp_ty'));

-- [11] catalogue | simple | sent 2x | by: synchronize (second); queryRunner introspection
-- result: table_schema name, table_name name, constraint_name name, column_name name, is_unique text, condition text, type_name name, index_type name
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "i"."relname" AS "constraint_name", "a"."attname" AS "column_name", CASE "ix"."indisunique" WHEN 't' THEN 'TRUE' ELSE'FALSE' END AS "is_unique", pg_get_expr("ix"."indpred", "ix"."indrelid") AS "condition", "types"."typname" AS "type_name", "am"."amname" AS "index_type" FROM "pg_class" "t" INNER JOIN "pg_index" "ix" ON "ix"."indrelid" = "t"."oid" INNER JOIN "pg_attribute" "a" ON "a"."attrelid" = "t"."oid"  AND "a"."attnum" = ANY ("ix"."indkey") INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "t"."relnamespace" INNER JOIN "pg_class" "i" ON "i"."oid" = "ix"."indexrelid" INNER JOIN "pg_type" "types" ON "types"."oid" = "a"."atttypid" INNER JOIN "pg_am" "am" ON "i"."relam" = "am"."oid" LEFT JOIN "pg_constraint" "cnst" ON "cnst"."conname" = "i"."relname" WHERE "t"."relkind" IN ('r', 'p') AND "cnst"."contype" IS NULL AND (("ns"."nspname" = 'public' AND "t"."relname" = 'orders') OR ("ns"."nspname" = 'public' AND "t"."relname" = 'tmp_ty'));

-- [12] catalogue | simple | sent 2x | by: synchronize (second); queryRunner introspection
-- result: constraint_name name, table_schema name, table_name name, column_name name, referenced_table_schema name, referenced_table_name name, referenced_column_name name, on_delete text, on_update text, deferrable boolean, deferred text
SELECT "con"."conname" AS "constraint_name", "con"."nspname" AS "table_schema", "con"."relname" AS "table_name", "att2"."attname" AS "column_name", "ns"."nspname" AS "referenced_table_schema", "cl"."relname" AS "referenced_table_name", "att"."attname" AS "referenced_column_name", "con"."confdeltype" AS "on_delete", "con"."confupdtype" AS "on_update", "con"."condeferrable" AS "deferrable", "con"."condeferred" AS "deferred" FROM ( SELECT UNNEST ("con1"."conkey") AS "parent", UNNEST ("con1"."confkey") AS "child", "con1"."confrelid", "con1"."conrelid", "con1"."conname", "con1"."contype", "ns"."nspname", "cl"."relname", "con1"."condeferrable", CASE WHEN "con1"."condeferred" THEN 'INITIALLY DEFERRED' ELSE 'INITIALLY IMMEDIATE' END as condeferred, CASE "con1"."confdeltype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confdeltype", CASE "con1"."confupdtype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confupdtype" FROM "pg_class" "cl" INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_constraint" "con1" ON "con1"."conrelid" = "cl"."oid" WHERE "con1"."contype" = 'f' AND (("ns"."nspname" = 'public' AND "cl"."relname" = 'orders') OR ("ns"."nspname" = 'public' AND "cl"."relname" = 'tmp_ty')) ) "con" INNER JOIN "pg_attribute" "att" ON "att"."attrelid" = "con"."confrelid" AND "att"."attnum" = "con"."child" INNER JOIN "pg_class" "cl" ON "cl"."oid" = "con"."confrelid"  AND "cl"."relispartition" = 'f'INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_attribute" "att2" ON "att2"."attrelid" = "con"."conrelid" AND "att2"."attnum" = "con"."parent";

-- [13] catalogue | simple | sent 92x | by: synchronize (second); queryRunner introspection
-- result: udt_schema name, udt_name name
SELECT "udt_schema", "udt_name" FROM "information_schema"."columns" WHERE "table_schema" = 'public' AND "table_name" = 'tmp_ty' AND "column_name"='e';

-- [14] catalogue | simple | sent 92x | by: synchronize (second); queryRunner introspection
-- result: value name
SELECT "e"."enumlabel" AS "value" FROM "pg_enum" "e" INNER JOIN "pg_type" "t" ON "t"."oid" = "e"."enumtypid" INNER JOIN "pg_namespace" "n" ON "n"."oid" = "t"."typnamespace" WHERE "n"."nspname" = 'public' AND "t"."typname" = 'tmp_ty_e_enum' ORDER BY "e"."enumsortorder";

-- [15] catalogue | extended | sent 1x | by: queryRunner introspection
-- parameters: $1 name (Parse says unspecified) = 'public', $2 name (Parse says unspecified) = 'people', $3 name (Parse says unspecified) = 'doc'
-- result: table_catalog name, table_schema name, table_name name, column_name name, ordinal_position integer, column_default character varying, is_nullable character varying, data_type character varying, character_maximum_length integer, character_octet_length integer, numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type character varying, interval_precision integer, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality integer, dtd_identifier name, is_self_referencing character varying, is_identity character varying, identity_generation character varying, identity_start character varying, identity_increment character varying, identity_maximum character varying, identity_minimum character varying, identity_cycle character varying, is_generated character varying, generation_expression character varying, is_updatable character varying
SELECT * FROM "information_schema"."columns" WHERE "table_schema" = $1 AND "table_name" = $2 AND "column_name" = $3;

-- [16] catalogue | simple | sent 1x | by: queryRunner introspection
-- result: table_schema name, table_name name, table_comment text
SELECT "table_schema", "table_name", obj_description((quote_ident("table_schema") || '.' || quote_ident("table_name"))::regclass, 'pg_class') AS table_comment FROM "information_schema"."tables";

-- [17] catalogue | simple | sent 1x | by: queryRunner introspection
-- result: table_schema name, table_name name, table_comment text
SELECT "table_schema", "table_name", obj_description((quote_ident("table_schema") || '.' || quote_ident("table_name"))::regclass, 'pg_class') AS table_comment FROM "information_schema"."tables" WHERE ("table_schema" = 'public' AND "table_name" = 'people');

-- [18] catalogue | extended | sent 1x | by: queryRunner introspection
-- parameters: $1 name (Parse says unspecified) = 'public'
-- result: catalog_name name, schema_name name, schema_owner name, default_character_set_catalog name, default_character_set_schema name, default_character_set_name name, sql_path character varying
SELECT * FROM "information_schema"."schemata" WHERE "schema_name" = $1;

-- [19] catalogue | extended | sent 1x | by: queryRunner introspection
-- parameters: $1 name (Parse says unspecified) = 'app'
-- result: oid oid, datname name, datdba oid, encoding integer, datlocprovider "char", datistemplate boolean, datallowconn boolean, datconnlimit integer, datfrozenxid xid, datminmxid xid, dattablespace oid, datcollate text, datctype text, daticulocale text, daticurules text, datcollversion text, datacl aclitem[]
SELECT * FROM pg_database WHERE datname=$1;

-- [20] session | simple | sent 1x | by: initialize
-- result: version text
SELECT version();

-- [21] session | simple | sent 7x | by: synchronize; synchronize (second); save insert; save update; insert uuid; … (7 actions)
-- result: START TRANSACTION
START TRANSACTION;

-- [22] session | simple | sent 7x | by: synchronize; synchronize (second); save insert; save update; insert uuid; … (7 actions)
-- result: COMMIT
COMMIT;

-- [23] session | simple | sent 1x | by: transaction
-- result: SET
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [24] session | simple | sent 1x | by: nested transaction
-- result: SAVEPOINT
SAVEPOINT typeorm_1;

-- [25] session | simple | sent 1x | by: nested transaction
-- result: RELEASE
RELEASE SAVEPOINT typeorm_1;

-- [26] data | simple | sent 6x | by: initialize; synchronize; synchronize (second); queryRunner introspection
-- result: current_schema name
SELECT * FROM current_schema();

-- [27] data | simple | sent 1x | by: initialize
-- result: CREATE EXTENSION
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";

-- [28] data | simple | sent 5x | by: synchronize; synchronize (second); queryRunner introspection
-- result: current_database name
SELECT * FROM current_database();

-- [29] data | simple | sent 1x | by: synchronize
-- result: CREATE TYPE
CREATE TYPE "public"."tmp_ty_e_enum" AS ENUM('a', 'b');

-- [30] data | simple | sent 1x | by: synchronize
-- result: CREATE TABLE
CREATE TABLE "tmp_ty" ("id" uuid NOT NULL DEFAULT uuid_generate_v4(), "e" "public"."tmp_ty_e_enum" NOT NULL, "n" character varying NOT NULL, CONSTRAINT "UQ_bcc342d52e2c570b92425f68cf7" UNIQUE ("n"), CONSTRAINT "PK_aa044dcbae84c9ec524a8566394" PRIMARY KEY ("id"));

-- [31] data | simple | sent 1x | by: synchronize
-- result: CREATE INDEX
CREATE INDEX "IDX_a14a1891bf94156fc3770b874c" ON "tmp_ty"  ("e");

-- [32] data | extended | sent 1x | by: find
-- parameters: $1 text (Parse says unspecified) = 'o1'
-- result: orders_id text, orders_doc jsonb
SELECT "orders"."id" AS "orders_id", "orders"."doc" AS "orders_doc" FROM "orders" "orders" WHERE (("orders"."id" = $1)) ORDER BY "orders"."id" DESC LIMIT 3;

-- [33] data | extended | sent 1x | by: findOneBy
-- parameters: $1 text (Parse says unspecified) = 'o1'
-- result: orders_id text, orders_doc jsonb
SELECT "orders"."id" AS "orders_id", "orders"."doc" AS "orders_doc" FROM "orders" "orders" WHERE (("orders"."id" = $1)) LIMIT 1;

-- [34] data | simple | sent 1x | by: findAndCount
-- result: orders_id text, orders_doc jsonb
SELECT "orders"."id" AS "orders_id", "orders"."doc" AS "orders_doc" FROM "orders" "orders" LIMIT 2;

-- [35] data | simple | sent 3x | by: findAndCount; transaction; nested transaction
-- result: cnt bigint
SELECT COUNT(1) AS "cnt" FROM "orders" "orders";

-- [36] data | extended | sent 2x | by: save insert; save update
-- parameters: $1 text (Parse says unspecified) = 'ty1'
-- result: orders_id text, orders_doc jsonb
SELECT "orders"."id" AS "orders_id", "orders"."doc" AS "orders_doc" FROM "orders" "orders" WHERE "orders"."id" = $1;

-- [37] data | extended | sent 1x | by: save insert
-- parameters: $1 text (Parse says unspecified) = 'ty1', $2 jsonb (Parse says unspecified) = '{}'
-- result: INSERT n n
INSERT INTO "orders"("id", "doc") VALUES ($1, $2);

-- [38] data | extended | sent 1x | by: save update
-- parameters: $1 jsonb (Parse says unspecified) = '{"a":1}', $2 text (Parse says unspecified) = 'ty1'
-- result: UPDATE n
UPDATE "orders" SET "doc" = $1 WHERE "id" = $2;

-- [39] data | extended | sent 1x | by: insert uuid
-- parameters: $1 unspecified = 'a', $2 unspecified = 'x'
-- result: id uuid
INSERT INTO "tmp_ty"("id", "e", "n") VALUES (DEFAULT, $1, $2) RETURNING "id";

-- [40] data | extended | sent 1x | by: upsert
-- parameters: $1 text (Parse says unspecified) = 'ty1', $2 jsonb (Parse says unspecified) = '{}'
-- result: INSERT n n
INSERT INTO "orders"("id", "doc") VALUES ($1, $2) ON CONFLICT ( "id" ) DO UPDATE SET "id" = EXCLUDED."id", "doc" = EXCLUDED."doc";

-- [41] data | extended | sent 1x | by: delete
-- parameters: $1 text (Parse says unspecified) = 'ty1'
-- result: DELETE n
DELETE FROM "orders" WHERE "id" = $1;

-- [42] data | extended | sent 1x | by: query builder
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- result: o_id text, o_doc jsonb
SELECT "o"."id" AS "o_id", "o"."doc" AS "o_doc" FROM "orders" "o" WHERE o.doc->>'person'=$1;

-- [43] data | simple | sent 1x | by: runMigrations
-- result: CREATE TABLE
CREATE TABLE "migrations" ("id" SERIAL NOT NULL, "timestamp" bigint NOT NULL, "name" character varying NOT NULL, CONSTRAINT "PK_8c82d7f526340ab734260ea46be" PRIMARY KEY ("id"));

-- [44] data | simple | sent 2x | by: runMigrations; showMigrations
-- result: id integer, timestamp bigint, name character varying
SELECT * FROM "migrations" "migrations" ORDER BY "id" DESC;
