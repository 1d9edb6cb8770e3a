-- sequelize: sequelize 6.37.8
-- 41 statements: 14 catalogue, 7 session, 20 data

-- [1] catalogue | simple | sent 2x | by: authenticate; sync
-- result: typname name, typtype "char", oid oid, typarray oid, rngtypname name, rngtypid oid, rngtyparray oid
WITH ranges AS (  SELECT pg_range.rngtypid, pg_type.typname AS rngtypname,         pg_type.typarray AS rngtyparray, pg_range.rngsubtype    FROM pg_range LEFT OUTER JOIN pg_type ON pg_type.oid = pg_range.rngtypid)SELECT pg_type.typname, pg_type.typtype, pg_type.oid, pg_type.typarray,       ranges.rngtypname, ranges.rngtypid, ranges.rngtyparray  FROM pg_type LEFT OUTER JOIN ranges ON pg_type.oid = ranges.rngsubtype WHERE (pg_type.typtype IN('b', 'e'));

-- [2] catalogue | simple | sent 1x | by: showAllSchemas
-- result: schema_name name
SELECT schema_name FROM information_schema.schemata WHERE schema_name <> 'information_schema' AND schema_name != 'public' AND schema_name !~ E'^pg_';

-- [3] catalogue | simple | sent 1x | by: showAllTables
-- result: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type LIKE '%TABLE' AND table_name != 'spatial_ref_sys';

-- [4] catalogue | simple | sent 1x | by: describeTable
-- result: Constraint character varying, Field name, Default character varying, Null character varying, Type text, special name[], Comment text
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'people' AND c.table_schema = 'public';

-- [5] catalogue | simple | sent 1x | by: showIndex
-- result: name name, primary boolean, unique boolean, indkey int2vector, column_indexes smallint[], column_names name[], definition text
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'people' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;

-- [6] catalogue | simple | sent 1x | by: showConstraint
-- result: constraintCatalog name, constraintSchema name, constraintName name, tableCatalog name, tableSchema name, tableName name, constraintType character varying, isDeferrable character varying, initiallyDeferred character varying
SELECT constraint_catalog AS "constraintCatalog", constraint_schema AS "constraintSchema", constraint_name AS "constraintName", table_catalog AS "tableCatalog", table_schema AS "tableSchema", table_name AS "tableName", constraint_type AS "constraintType", is_deferrable AS "isDeferrable", initially_deferred AS "initiallyDeferred" from INFORMATION_SCHEMA.table_constraints WHERE table_name='people';

-- [7] catalogue | simple | sent 1x | by: getForeignKeyReferencesForTable
-- result: constraint_name name, constraint_schema name, constraint_catalog name, table_name name, table_schema name, table_catalog name, initially_deferred character varying, is_deferrable character varying, column_name name, referenced_table_schema name, referenced_table_catalog name, referenced_table_name name, referenced_column_name name
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name,tc.table_schema as table_schema,tc.table_catalog as table_catalog,tc.initially_deferred as initially_deferred,tc.is_deferrable as is_deferrable,kcu.column_name as column_name,ccu.table_schema  AS referenced_table_schema,ccu.table_catalog  AS referenced_table_catalog,ccu.table_name  AS referenced_table_name,ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'people' AND tc.table_catalog = 'app';

-- [8] catalogue | simple | sent 1x | by: getForeignKeysForTables
-- result: constraint_name name, condef text
SELECT conname as constraint_name, pg_catalog.pg_get_constraintdef(r.oid, true) as condef FROM pg_catalog.pg_constraint r WHERE r.conrelid = (SELECT oid FROM pg_class WHERE relname = 'people' LIMIT 1) AND r.contype = 'f' ORDER BY 1;

-- [9] catalogue | simple | sent 1x | by: tableExists
-- result: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'people';

-- [10] catalogue | simple | sent 2x | by: sync; sync({alter:true})
-- result: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'tmp_sq';

-- [11] catalogue | simple | sent 2x | by: sync; sync({alter:true})
-- result: enum_name name, enum_value name[]
SELECT t.typname enum_name, array_agg(e.enumlabel ORDER BY enumsortorder) enum_value FROM pg_type t JOIN pg_enum e ON t.oid = e.enumtypid JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = 'public' AND t.typname='enum_tmp_sq_e' GROUP BY 1;

-- [12] catalogue | simple | sent 2x | by: sync; sync({alter:true})
-- result: name name, primary boolean, unique boolean, indkey int2vector, column_indexes smallint[], column_names name[], definition text
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'tmp_sq' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;

-- [13] catalogue | simple | sent 1x | by: sync({alter:true})
-- result: Constraint character varying, Field name, Default character varying, Null character varying, Type text, special name[], Comment text
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'tmp_sq' AND c.table_schema = 'public';

-- [14] catalogue | simple | sent 1x | by: sync({alter:true})
-- result: constraint_name name, constraint_schema name, constraint_catalog name, table_name name, table_schema name, table_catalog name, initially_deferred character varying, is_deferrable character varying, column_name name, referenced_table_schema name, referenced_table_catalog name, referenced_table_name name, referenced_column_name name
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name,tc.table_schema as table_schema,tc.table_catalog as table_catalog,tc.initially_deferred as initially_deferred,tc.is_deferrable as is_deferrable,kcu.column_name as column_name,ccu.table_schema  AS referenced_table_schema,ccu.table_catalog  AS referenced_table_catalog,ccu.table_name  AS referenced_table_name,ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'tmp_sq' AND tc.table_catalog = 'app';

-- [15] session | simple | sent 2x | by: authenticate
-- result: SET
SET client_min_messages TO warning;SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE;

-- [16] session | simple | sent 1x | by: authenticate
-- result: result integer
SELECT 1+1 AS result;

-- [17] session | simple | sent 1x | by: databaseVersion
-- result: server_version text
SHOW SERVER_VERSION;

-- [18] session | simple | sent 2x | by: transaction; findOrCreate
-- result: START TRANSACTION
START TRANSACTION;

-- [19] session | simple | sent 1x | by: transaction
-- result: SET
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [20] session | simple | sent 1x | by: transaction
-- result: SAVEPOINT
SAVEPOINT "<uuid>-sp-1";

-- [21] session | simple | sent 2x | by: transaction; findOrCreate
-- result: COMMIT
COMMIT;

-- [22] data | simple | sent 1x | by: sync
-- result: DO
DO 'BEGIN CREATE TYPE "public"."enum_tmp_sq_e" AS ENUM(''x'', ''y''); EXCEPTION WHEN duplicate_object THEN null; END';

-- [23] data | simple | sent 1x | by: sync
-- result: CREATE TABLE
CREATE TABLE IF NOT EXISTS "tmp_sq" ("id"   SERIAL , "a" VARCHAR(255) UNIQUE, "e" "public"."enum_tmp_sq_e", "createdAt" TIMESTAMP WITH TIME ZONE NOT NULL, "updatedAt" TIMESTAMP WITH TIME ZONE NOT NULL, PRIMARY KEY ("id"));

-- [24] data | simple | sent 1x | by: sync
-- result: CREATE INDEX
CREATE INDEX "tmp_sq_e" ON "tmp_sq" ("e");

-- [25] data | simple | sent 1x | by: sync({alter:true})
-- result: ALTER TABLE
ALTER TABLE "tmp_sq" ALTER COLUMN "a" DROP NOT NULL;ALTER TABLE "tmp_sq" ALTER COLUMN "a" DROP DEFAULT;ALTER TABLE "tmp_sq"  ADD UNIQUE ("a");ALTER TABLE "tmp_sq" ALTER COLUMN "a" TYPE VARCHAR(255) ;

-- [26] data | simple | sent 1x | by: sync({alter:true})
-- result: ALTER TABLE, DO
ALTER TABLE "tmp_sq" ALTER COLUMN "e" DROP NOT NULL;ALTER TABLE "tmp_sq" ALTER COLUMN "e" DROP DEFAULT;DO 'BEGIN CREATE TYPE "public"."enum_tmp_sq_e" AS ENUM(''x'', ''y''); EXCEPTION WHEN duplicate_object THEN null; END';ALTER TABLE "tmp_sq" ALTER COLUMN "e" TYPE "public"."enum_tmp_sq_e" USING ("e"::"public"."enum_tmp_sq_e");

-- [27] data | simple | sent 1x | by: sync({alter:true})
-- result: ALTER TABLE
ALTER TABLE "tmp_sq" ALTER COLUMN "createdAt" SET NOT NULL;ALTER TABLE "tmp_sq" ALTER COLUMN "createdAt" DROP DEFAULT;ALTER TABLE "tmp_sq" ALTER COLUMN "createdAt" TYPE TIMESTAMP WITH TIME ZONE;

-- [28] data | simple | sent 1x | by: sync({alter:true})
-- result: ALTER TABLE
ALTER TABLE "tmp_sq" ALTER COLUMN "updatedAt" SET NOT NULL;ALTER TABLE "tmp_sq" ALTER COLUMN "updatedAt" DROP DEFAULT;ALTER TABLE "tmp_sq" ALTER COLUMN "updatedAt" TYPE TIMESTAMP WITH TIME ZONE;

-- [29] data | simple | sent 1x | by: findAll
-- result: id text, doc jsonb
SELECT "id", "doc" FROM "orders" AS "orders" WHERE "orders"."id" = 'o1' ORDER BY "orders"."id" DESC LIMIT 3;

-- [30] data | simple | sent 1x | by: findAll json
-- result: id text, doc jsonb
SELECT "id", "doc" FROM "orders" AS "orders" WHERE ("orders"."doc"#>>'{person}') = 'p1';

-- [31] data | simple | sent 1x | by: findByPk
-- result: id text, doc jsonb
SELECT "id", "doc" FROM "orders" AS "orders" WHERE "orders"."id" = 'o1';

-- [32] data | simple | sent 3x | by: findAndCountAll; transaction
-- result: count bigint
SELECT count(*) AS "count" FROM "orders" AS "orders";

-- [33] data | simple | sent 1x | by: findAndCountAll
-- result: id text, doc jsonb
SELECT "id", "doc" FROM "orders" AS "orders" LIMIT 2;

-- [34] data | extended | sent 1x | by: create
-- parameters: $1 text (Parse says unspecified) = 'sq1', $2 jsonb (Parse says unspecified) = '{}'
-- result: id text, doc jsonb
INSERT INTO "orders" ("id","doc") VALUES ($1,$2) RETURNING "id","doc";

-- [35] data | simple | sent 1x | by: bulkCreate
-- result: id text, doc jsonb
INSERT INTO "orders" ("id") VALUES ('sq2'),('sq3') ON CONFLICT DO NOTHING RETURNING "id","doc";

-- [36] data | extended | sent 1x | by: upsert
-- parameters: $1 text (Parse says unspecified) = 'sq2', $2 jsonb (Parse says unspecified) = '{}'
-- result: id text, doc jsonb
INSERT INTO "orders" ("id","doc") VALUES ($1,$2) ON CONFLICT ("id") DO UPDATE SET "id"=EXCLUDED."id","doc"=EXCLUDED."doc" RETURNING "id","doc";

-- [37] data | extended | sent 1x | by: update
-- parameters: $1 jsonb (Parse says unspecified) = '{}', $2 text (Parse says unspecified) = 'sq2'
-- result: id text, doc jsonb
UPDATE "orders" SET "doc"=$1 WHERE "id" = $2 RETURNING "id","doc";

-- [38] data | simple | sent 1x | by: destroy
-- result: DELETE n
DELETE FROM "orders" WHERE "id" IN ('sq1', 'sq2', 'sq3');

-- [39] data | simple | sent 1x | by: findOrCreate
-- result: id integer, a character varying, e oid 17408, createdAt timestamp with time zone, updatedAt timestamp with time zone
SELECT "id", "a", "e", "createdAt", "updatedAt" FROM "tmp_sq" AS "tmp_sq" WHERE "tmp_sq"."a" = 'x';

-- [40] data | simple | sent 1x | by: findOrCreate
-- result: id integer, a character varying, e oid 17408, createdAt timestamp with time zone, updatedAt timestamp with time zone, sequelize_caught_exception text
CREATE OR REPLACE FUNCTION pg_temp.testfunc(OUT response "tmp_sq", OUT sequelize_caught_exception text) RETURNS RECORD AS $func_dedd62c022c24042a2065681e09e33b1$ BEGIN INSERT INTO "tmp_sq" ("id","a","createdAt","updatedAt") VALUES (DEFAULT,'x','<timestamp> +00:00','<timestamp> +00:00') RETURNING * INTO response; EXCEPTION WHEN unique_violation THEN GET STACKED DIAGNOSTICS sequelize_caught_exception = PG_EXCEPTION_DETAIL; END $func_dedd62c022c24042a2065681e09e33b1$ LANGUAGE plpgsql; SELECT (testfunc.response)."id", (testfunc.response)."a", (testfunc.response)."e", (testfunc.response)."createdAt", (testfunc.response)."updatedAt", testfunc.sequelize_caught_exception FROM pg_temp.testfunc(); DROP FUNCTION IF EXISTS pg_temp.testfunc();

-- [41] data | simple | sent 1x | by: drop
-- result: DROP TABLE
DROP TABLE IF EXISTS "tmp_sq";
