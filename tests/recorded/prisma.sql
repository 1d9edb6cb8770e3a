-- prisma: prisma 6.19.3, WebAssembly schema engine with adapter-pg (the adapter was patched for recording: unmodified, it refuses result columns of type name)
-- 46 statements: 14 catalogue, 5 session, 27 data

-- [1] catalogue | extended | sent 13x | by: db pull; db push; migrate diff / db push (new model); migrate status; migrate dev; … (8 actions)
-- parameters: $1 name (Parse says unspecified) = 'public'
-- result: exists boolean, version text, numeric_version integer
SELECT EXISTS(SELECT 1 FROM pg_namespace WHERE nspname = $1), version(), current_setting('server_version_num')::integer as numeric_version;

-- [2] catalogue | extended | sent 7x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: namespace_name name
SELECT namespace.nspname as namespace_name
FROM pg_namespace as namespace
WHERE namespace.nspname = ANY ( $1 )
ORDER BY namespace_name;

-- [3] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: table_name name, namespace name, is_partition boolean, has_subclass boolean, has_row_level_security boolean, reloptions text[], description text
SELECT
  tbl.relname AS table_name,
  namespace.nspname as namespace,
  (tbl.relhassubclass and tbl.relkind = 'p') as is_partition,
  (tbl.relhassubclass and tbl.relkind = 'r') as has_subclass,
  tbl.relrowsecurity as has_row_level_security,
  reloptions,
  obj_description(tbl.oid, 'pg_class') as description
FROM pg_class AS tbl
INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace
WHERE
  ( -- (relkind = 'r' and relispartition = 't') matches partition table "duplicates"
    (tbl.relkind = 'r' AND tbl.relispartition = 'f')
      OR -- when it's a partition
    tbl.relkind = 'p'
  )
  AND namespace.nspname = ANY ( $1 )
ORDER BY namespace, table_name;

-- [4] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: namespace name, table_name name, constraint_name name, constraint_type "char", constraint_definition text, is_deferrable boolean, is_deferred boolean
SELECT
    schemainfo.nspname AS namespace,
    tableinfo.relname AS table_name,
	constr.conname AS constraint_name,
	constr.contype AS constraint_type,
	pg_get_constraintdef(constr.oid) AS constraint_definition,
	constr.condeferrable AS is_deferrable,
	constr.condeferred AS is_deferred
FROM pg_constraint constr
JOIN pg_class AS tableinfo
	ON tableinfo.oid = constr.conrelid
JOIN pg_namespace AS schemainfo
	ON schemainfo.oid = tableinfo.relnamespace
WHERE schemainfo.nspname = ANY ( $1 )
	AND contype NOT IN ('p', 'u', 'f')
ORDER BY namespace, table_name, constr.contype, constraint_name;

-- [5] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: view_name name, view_sql text, namespace name, description text
SELECT
    views.viewname AS view_name,
    views.definition AS view_sql,
    views.schemaname AS namespace,
    obj_description(class.oid, 'pg_class') AS description
FROM pg_catalog.pg_views views
INNER JOIN pg_catalog.pg_namespace ns ON views.schemaname = ns.nspname
INNER JOIN pg_catalog.pg_class class ON class.relnamespace = ns.oid AND class.relname = views.viewname
WHERE schemaname = ANY ( $1 );

-- [6] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: name name, value name, namespace name, description text
SELECT
                t.typname AS name,
                e.enumlabel AS value,
                n.nspname AS namespace,
                obj_description(t.oid, 'pg_type') AS description
            FROM pg_type t
            JOIN pg_enum e ON t.oid = e.enumtypid
            JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
            WHERE n.nspname = ANY ( $1 )
            ORDER BY e.enumsortorder;

-- [7] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: name name, namespace name
SELECT
                t.typname AS name,
                n.nspname AS namespace
            FROM pg_type t
            JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
            WHERE n.nspname = ANY ( $1 )
              AND t.typtype = 'b' -- only base types
              AND t.typinput::regproc::text <> 'array_in' -- exclude array types;

-- [8] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: namespace name, table_name name, column_name name, formatted_type text, numeric_precision integer, numeric_scale integer, numeric_precision_radix integer, datetime_precision integer, data_type character varying, type_schema_name name, full_data_type name, column_default text, is_nullable character varying, is_identity character varying, character_maximum_length integer, description text
SELECT
                oid.namespace,
                info.table_name,
                info.column_name,
                format_type(att.atttypid, att.atttypmod) as formatted_type,
                info.numeric_precision,
                info.numeric_scale,
                info.numeric_precision_radix,
                info.datetime_precision,
                info.data_type,
                info.udt_schema as type_schema_name,
                info.udt_name as full_data_type,
                pg_get_expr(attdef.adbin, attdef.adrelid) AS column_default,
                info.is_nullable,
                info.is_identity,
                info.character_maximum_length,
                col_description(att.attrelid, ordinal_position) AS description
            FROM information_schema.columns info
            JOIN pg_attribute att ON att.attname = info.column_name
            JOIN (
                 SELECT pg_class.oid, relname, pg_namespace.nspname as namespace
                 FROM pg_class
                 JOIN pg_namespace on pg_namespace.oid = pg_class.relnamespace
                 AND pg_namespace.nspname = ANY ( $1 )
                 WHERE reltype > 0
                ) as oid on oid.oid = att.attrelid
                  AND relname = info.table_name
                  AND namespace = info.table_schema
            LEFT OUTER JOIN pg_attrdef attdef ON attdef.adrelid = att.attrelid AND attdef.adnum = att.attnum AND table_schema = namespace
            WHERE table_schema = ANY ( $1 ) 
            ORDER BY namespace, table_name, ordinal_position;

-- [9] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: con_id oid, child_column name, parent_table name, parent_column name, confdeltype "char", confupdtype "char", referenced_schema_name name, constraint_name name, child smallint, parent smallint, table_name name, namespace name, condeferrable boolean, condeferred boolean
SELECT
                con.oid         AS "con_id",
                att2.attname    AS "child_column",
                cl.relname      AS "parent_table",
                att.attname     AS "parent_column",
                con.confdeltype,
                con.confupdtype,
                rel_ns.nspname  AS "referenced_schema_name",
                conname         AS constraint_name,
                child,
                parent,
                table_name,
                namespace,
                condeferrable,
                condeferred
            FROM (SELECT
                        ns.nspname AS "namespace",
                        unnest(con1.conkey)                AS "parent",
                        unnest(con1.confkey)                AS "child",
                        cl.relname                          AS table_name,
                        ns.nspname                          AS schema_name,
                        generate_subscripts(con1.conkey, 1) AS colidx,
                        con1.oid,
                        con1.confrelid,
                        con1.conrelid,
                        con1.conname,
                        con1.confdeltype,
                        con1.confupdtype,
                        con1.condeferrable                  AS condeferrable,
                        con1.condeferred                    AS condeferred
                FROM pg_class cl
                        join pg_constraint con1 on con1.conrelid = cl.oid
                        join pg_namespace ns on cl.relnamespace = ns.oid
                WHERE
                    ns.nspname = ANY ( $1 )
                    and con1.contype = 'f'
                ORDER BY colidx
                ) con
                    JOIN pg_attribute att on att.attrelid = con.confrelid and att.attnum = con.child
                    JOIN pg_class cl on cl.oid = con.confrelid
                    JOIN pg_attribute att2 on att2.attrelid = con.conrelid and att2.attnum = con.parent
                    JOIN pg_class rel_cl on con.confrelid = rel_cl.oid
                    JOIN pg_namespace rel_ns on rel_cl.relnamespace = rel_ns.oid
            ORDER BY namespace, table_name, constraint_name, con_id, con.colidx;

-- [10] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: namespace name, index_name name, table_name name, column_name name, is_unique boolean, is_primary_key boolean, column_index integer, opclass name, opcdefault boolean, index_algo name, column_order text, nulls_first boolean, condeferrable boolean, condeferred boolean
WITH rawindex AS (
    SELECT
        indrelid, 
        indexrelid,
        indisunique,
        indisprimary,
        unnest(indkey) AS indkeyid,
        generate_subscripts(indkey, 1) AS indkeyidx,
        unnest(indclass) AS indclass,
        unnest(indoption) AS indoption
    FROM pg_index -- https://www.postgresql.org/docs/current/catalog-pg-index.html
    WHERE
        indpred IS NULL -- filter out partial indexes
        AND NOT indisexclusion -- filter out exclusion constraints
)
SELECT
    schemainfo.nspname AS namespace,
    indexinfo.relname AS index_name,
    tableinfo.relname AS table_name,
    columninfo.attname AS column_name,
    rawindex.indisunique AS is_unique,
    rawindex.indisprimary AS is_primary_key,
    rawindex.indkeyidx AS column_index,
    opclass.opcname AS opclass,
    opclass.opcdefault AS opcdefault,
    indexaccess.amname AS index_algo,
    CASE rawindex.indoption & 1
        WHEN 1 THEN 'DESC'
        ELSE 'ASC' END
        AS column_order,
    CASE rawindex.indoption & 2
        WHEN 2 THEN true
        ELSE false END
        AS nulls_first,
    pc.condeferrable AS condeferrable,
    pc.condeferred AS condeferred
FROM
    rawindex
    INNER JOIN pg_class AS tableinfo ON tableinfo.oid = rawindex.indrelid
    INNER JOIN pg_class AS indexinfo ON indexinfo.oid = rawindex.indexrelid
    INNER JOIN pg_namespace AS schemainfo ON schemainfo.oid = tableinfo.relnamespace
    LEFT JOIN pg_attribute AS columninfo
        ON columninfo.attrelid = tableinfo.oid AND columninfo.attnum = rawindex.indkeyid
    INNER JOIN pg_am AS indexaccess ON indexaccess.oid = indexinfo.relam
    LEFT JOIN pg_opclass AS opclass -- left join because crdb has no opclasses
        ON opclass.oid = rawindex.indclass
    LEFT JOIN pg_constraint pc ON rawindex.indexrelid = pc.conindid AND pc.contype <> 'f'
WHERE schemainfo.nspname = ANY ( $1 )
ORDER BY namespace, table_name, index_name, column_index;

-- [11] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: name name, namespace name, definition text
SELECT p.proname AS name, n.nspname as namespace,
                CASE WHEN l.lanname = 'internal' THEN p.prosrc
                     ELSE pg_get_functiondef(p.oid)
                     END as definition
            FROM pg_proc p
            LEFT JOIN pg_namespace n ON p.pronamespace = n.oid
            LEFT JOIN pg_language l ON p.prolang = l.oid
            WHERE n.nspname = ANY ( $1 );

-- [12] catalogue | simple | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- result: extension_name name, extension_version text, extension_relocatable boolean, extension_schema name
SELECT
    ext.extname AS extension_name,
    ext.extversion AS extension_version,
    ext.extrelocatable AS extension_relocatable,
    pn.nspname AS extension_schema
FROM pg_extension ext
INNER JOIN pg_namespace pn ON ext.extnamespace = pn.oid
ORDER BY ext.extname ASC;

-- [13] catalogue | extended | sent 6x | by: db pull; db push; migrate diff / db push (new model); migrate dev
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: sequence_name name, namespace name, start_value bigint, min_value bigint, max_value bigint, increment_by bigint, cycle boolean, cache_size bigint
SELECT
                  sequence_name,
                  sequence_schema AS namespace,
                  start_value::INT8,
                  minimum_value::INT8 AS min_value,
                  maximum_value::INT8 AS max_value,
                  increment::INT8 AS increment_by,
                  (CASE cycle_option WHEN 'yes' THEN TRUE ELSE FALSE END) AS cycle,
                  0::INT8 AS cache_size
              FROM information_schema.sequences
              WHERE sequence_schema = ANY ( $1 )
              ORDER BY sequence_name;

-- [14] catalogue | extended | sent 4x | by: migrate dev; migrate deploy; migrate deploy (second)
-- parameters: $1 name[] (Parse says unspecified) = '{"public"}'
-- result: table_name name, table_namespace name
SELECT tbl.relname AS table_name, namespace.nspname AS table_namespace
                FROM pg_class AS tbl
                INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace
                WHERE tbl.relkind = 'r' AND namespace.nspname = ANY ( $1 );

-- [15] session | simple | sent 4x | by: migrate dev; migrate deploy; migrate deploy (second)
-- result: pg_advisory_lock void
SELECT pg_advisory_lock(72707369);

-- [16] session | simple | sent 2x | by: createMany; $transaction
-- result: BEGIN
BEGIN;

-- [17] session | simple | sent 2x | by: createMany; $transaction
-- result: COMMIT
COMMIT;

-- [18] session | simple | sent 1x | by: $transaction
-- result: SET
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [19] session | simple | sent 1x | by: autoincrement create
-- result: ?column? integer
SELECT 1;

-- [20] data | simple | sent 1x | by: migrate diff / db push (new model)
-- result: CREATE TABLE
CREATE TABLE "tmp_pr" (
    "id" SERIAL NOT NULL,
    "n" TEXT NOT NULL,

    CONSTRAINT "tmp_pr_pkey" PRIMARY KEY ("id")
);

-- [21] data | simple | sent 1x | by: migrate diff / db push (new model)
-- result: CREATE INDEX
CREATE UNIQUE INDEX "tmp_pr_n_key" ON "tmp_pr"("n");

-- [22] data | simple | sent 5x | by: migrate status; migrate dev; migrate deploy; migrate deploy (second)
-- result: id character varying, checksum character varying, finished_at timestamp with time zone, migration_name character varying, logs text, rolled_back_at timestamp with time zone, started_at timestamp with time zone, applied_steps_count integer
SELECT "id", "checksum", "finished_at", "migration_name", "logs", "rolled_back_at", "started_at", "applied_steps_count" FROM "_prisma_migrations" ORDER BY "started_at" ASC;

-- [23] data | simple | sent 2x | by: migrate dev
-- result: CREATE DATABASE
CREATE DATABASE "prisma_migrate_shadow_db_<uuid>";

-- [24] data | simple | sent 2x | by: migrate dev
-- result: DROP DATABASE
DROP DATABASE "prisma_migrate_shadow_db_<uuid>";

-- [25] data | simple | sent 1x | by: migrate deploy
-- result: CREATE TABLE
CREATE TABLE _prisma_migrations (
    id                      VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum                VARCHAR(64) NOT NULL,
    finished_at             TIMESTAMPTZ,
    migration_name          VARCHAR(255) NOT NULL,
    logs                    TEXT,
    rolled_back_at          TIMESTAMPTZ,
    started_at              TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count     INTEGER NOT NULL DEFAULT 0
);

-- [26] data | extended | sent 1x | by: migrate deploy
-- parameters: $1 unspecified = '<uuid>', $2 unspecified = '<hash>', $3 unspecified = '<timestamp>', $4 unspecified = '1_init'
-- result: INSERT n n
INSERT INTO "_prisma_migrations" ("id","checksum","started_at","migration_name") VALUES ($1,$2,$3,$4);

-- [27] data | simple | sent 1x | by: migrate deploy
-- result: CREATE SCHEMA
-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "public";

-- [28] data | simple | sent 1x | by: migrate deploy
-- result: CREATE TYPE
-- CreateEnum
CREATE TYPE "enum_tmp_sq_e" AS ENUM ('x', 'y');

-- [29] data | simple | sent 1x | by: migrate deploy
-- result: CREATE TABLE
-- CreateTable
CREATE TABLE "orders" (
    "id" TEXT NOT NULL,
    "doc" JSONB,

    CONSTRAINT "orders_pkey" PRIMARY KEY ("id")
);

-- [30] data | simple | sent 1x | by: migrate deploy
-- result: CREATE TABLE
-- CreateTable
CREATE TABLE "people" (
    "id" TEXT NOT NULL,
    "doc" JSONB,

    CONSTRAINT "people_pkey" PRIMARY KEY ("id")
);

-- [31] data | simple | sent 1x | by: migrate deploy
-- result: CREATE TABLE
-- CreateTable
CREATE TABLE "tmp_pr" (
    "id" SERIAL NOT NULL,
    "n" TEXT NOT NULL,

    CONSTRAINT "tmp_pr_pkey" PRIMARY KEY ("id")
);

-- [32] data | simple | sent 1x | by: migrate deploy
-- result: CREATE INDEX
-- CreateIndex
CREATE UNIQUE INDEX "tmp_pr_n_key" ON "tmp_pr"("n");

-- [33] data | extended | sent 1x | by: migrate deploy
-- parameters: $1 unspecified = '1', $2 unspecified = '<uuid>'
-- result: UPDATE n
UPDATE "_prisma_migrations" SET "applied_steps_count" = ("applied_steps_count" + $1) WHERE "id" = $2;

-- [34] data | extended | sent 1x | by: migrate deploy
-- parameters: $1 unspecified = '<timestamp>', $2 unspecified = '<uuid>'
-- result: UPDATE n
UPDATE "_prisma_migrations" SET "finished_at" = $1 WHERE "id" = $2;

-- [35] data | extended | sent 1x | by: findMany
-- parameters: $1 text (Parse says unspecified) = 'o1', $2 bigint (Parse says unspecified) = '3', $3 bigint (Parse says unspecified) = '0'
-- result: id text, doc jsonb
SELECT "public"."orders"."id", "public"."orders"."doc" FROM "public"."orders" WHERE "public"."orders"."id" = $1 ORDER BY "public"."orders"."id" DESC LIMIT $2 OFFSET $3;

-- [36] data | extended | sent 1x | by: findUnique
-- parameters: $1 text (Parse says unspecified) = 'o1', $2 bigint (Parse says unspecified) = '1', $3 bigint (Parse says unspecified) = '0'
-- result: id text, doc jsonb
SELECT "public"."orders"."id", "public"."orders"."doc" FROM "public"."orders" WHERE ("public"."orders"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3;

-- [37] data | extended | sent 2x | by: count; $transaction
-- parameters: $1 bigint (Parse says unspecified) = '0'
-- result: _count$_all bigint
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."orders"."id" FROM "public"."orders" WHERE 1=1 OFFSET $1) AS "sub";

-- [38] data | extended | sent 1x | by: create
-- parameters: $1 text (Parse says unspecified) = 'pr1', $2 jsonb (Parse says unspecified) = '{}'
-- result: id text, doc jsonb
INSERT INTO "public"."orders" ("id","doc") VALUES ($1,$2) RETURNING "public"."orders"."id", "public"."orders"."doc";

-- [39] data | extended | sent 1x | by: createMany
-- parameters: $1 text (Parse says unspecified) = 'pr2', $2 text (Parse says unspecified) = 'pr3'
-- result: INSERT n n
INSERT INTO "public"."orders" ("id") VALUES ($1), ($2) ON CONFLICT DO NOTHING;

-- [40] data | extended | sent 1x | by: update
-- parameters: $1 jsonb (Parse says unspecified) = '{"a":1}', $2 text (Parse says unspecified) = 'pr1'
-- result: id text, doc jsonb
UPDATE "public"."orders" SET "doc" = $1 WHERE ("public"."orders"."id" = $2 AND 1=1) RETURNING "public"."orders"."id", "public"."orders"."doc";

-- [41] data | extended | sent 1x | by: upsert
-- parameters: $1 text (Parse says unspecified) = 'pr1', $2 jsonb (Parse says unspecified) = '{}', $3 text (Parse says unspecified) = 'pr1'
-- result: id text, doc jsonb
INSERT INTO "public"."orders" ("id") VALUES ($1) ON CONFLICT ("id") DO UPDATE SET "doc" = $2 WHERE ("public"."orders"."id" = $3 AND 1=1) RETURNING "public"."orders"."id", "public"."orders"."doc";

-- [42] data | extended | sent 1x | by: deleteMany
-- parameters: $1 text (Parse says unspecified) = 'pr%'
-- result: DELETE n
DELETE FROM "public"."orders" WHERE "public"."orders"."id"::text LIKE $1;

-- [43] data | extended | sent 1x | by: json filter
-- parameters: $1 text (Parse says unspecified) = 'person', $2 jsonb (Parse says unspecified) = '"p1"', $3 bigint (Parse says unspecified) = '2', $4 bigint (Parse says unspecified) = '0'
-- result: id text, doc jsonb
SELECT "public"."orders"."id", "public"."orders"."doc" FROM "public"."orders" WHERE ("public"."orders"."doc"#>ARRAY[$1]::text[])::jsonb::jsonb = $2 ORDER BY "public"."orders"."id" ASC LIMIT $3 OFFSET $4;

-- [44] data | extended | sent 1x | by: groupBy
-- parameters: $1 bigint (Parse says unspecified) = '2', $2 bigint (Parse says unspecified) = '0'
-- result: _count$_all bigint, id text
SELECT COUNT(*) AS "_count$_all", "public"."orders"."id" FROM "public"."orders" WHERE 1=1 GROUP BY "public"."orders"."id" ORDER BY "public"."orders"."id" ASC LIMIT $1 OFFSET $2;

-- [45] data | extended | sent 1x | by: $queryRaw
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- result: id text
select id from people where id=$1;

-- [46] data | extended | sent 1x | by: autoincrement create
-- parameters: $1 unspecified = 'x'
-- result: id integer, n text
INSERT INTO "public"."tmp_pr" ("n") VALUES ($1) RETURNING "public"."tmp_pr"."id", "public"."tmp_pr"."n";
