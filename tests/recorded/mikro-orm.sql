-- mikro-orm: MikroORM 6.4.16
-- 22 statements: 8 catalogue, 6 session, 8 data

-- [1] catalogue | simple | sent 2x | by: init; migrator
-- result: ?column? integer
select 1 from pg_database where datname = 'app';

-- [2] catalogue | simple | sent 3x | by: generate entities; getUpdateSchemaSQL; migrator
-- result: table_name name, schema_name name, table_comment text
select table_name, table_schema as schema_name, (select pg_catalog.obj_description(c.oid) from pg_catalog.pg_class c
          where c.oid = (select ('"' || table_schema || '"."' || table_name || '"')::regclass::oid) and c.relname = table_name) as table_comment from information_schema.tables where "table_schema" not like 'pg_%' and "table_schema" not like 'crdb_%' and "table_schema" not like '_timescaledb_%' and "table_schema" not in ('information_schema', 'tiger', 'topology') and table_name != 'geometry_columns' and table_name != 'spatial_ref_sys' and table_type != 'VIEW' and table_name not in (select inhrelid::regclass::text from pg_inherits) order by table_name;

-- [3] catalogue | simple | sent 2x | by: generate entities; getUpdateSchemaSQL
-- result: enum_name name, schema_name name, enum_value name[]
select t.typname as enum_name, n.nspname as schema_name, array_agg(e.enumlabel order by e.enumsortorder) as enum_value
        from pg_type t
        join pg_enum e on t.oid = e.enumtypid
        join pg_catalog.pg_namespace n on n.oid = t.typnamespace
        where n.nspname in ('public')
        group by t.typname, n.nspname;

-- [4] catalogue | simple | sent 2x | by: generate entities; getUpdateSchemaSQL
-- result: schema_name name, table_name name, column_name name, column_default character varying, is_nullable character varying, udt_name name, udt_schema name, length integer, custom_length integer, numeric_precision integer, numeric_scale integer, data_type character varying, is_identity character varying, identity_generation character varying, generation_expression character varying, column_comment text
select table_schema as schema_name, table_name, column_name,
      column_default,
      is_nullable,
      udt_name,
      udt_schema,
      coalesce(datetime_precision, character_maximum_length) length,
      atttypmod custom_length,
      numeric_precision,
      numeric_scale,
      data_type,
      is_identity,
      identity_generation,
      generation_expression,
      pg_catalog.col_description(pgc.oid, cols.ordinal_position::int) column_comment
      from information_schema.columns cols
      join pg_class pgc on cols.table_name = pgc.relname
      join pg_attribute pga on pgc.oid = pga.attrelid and cols.column_name = pga.attname
      where ((table_schema = 'public' and table_name in ('orders','people')))
      order by ordinal_position;

-- [5] catalogue | simple | sent 2x | by: generate entities; getUpdateSchemaSQL
-- result: table_name regclass, schema_name name, constraint_name name, unique boolean, primary boolean, contype "char", condeferrable boolean, condeferred boolean, index_def text[], expression text, deferrable boolean, initially_deferred boolean
select indrelid::regclass as table_name, ns.nspname as schema_name, relname as constraint_name, idx.indisunique as unique, idx.indisprimary as primary, contype, condeferrable, condeferred,
      array(
        select pg_get_indexdef(idx.indexrelid, k + 1, true)
        from generate_subscripts(idx.indkey, 1) as k
        order by k
      ) as index_def,
      pg_get_indexdef(idx.indexrelid) as expression,
      c.condeferrable as deferrable,
      c.condeferred as initially_deferred
      from pg_index idx
      join pg_class as i on i.oid = idx.indexrelid
      join pg_namespace as ns on i.relnamespace = ns.oid
      left join pg_constraint as c on c.conname = i.relname
      where indrelid in ('"public"."orders"'::regclass, '"public"."people"'::regclass)
      order by relname;

-- [6] catalogue | simple | sent 2x | by: generate entities; getUpdateSchemaSQL
-- result: table_name name, schema_name name, name name, table_from regclass, column_name name, expression text
select ccu.table_name as table_name, ccu.table_schema as schema_name, pgc.conname as name, conrelid::regclass as table_from, ccu.column_name as column_name, pg_get_constraintdef(pgc.oid) as expression
      from pg_constraint pgc
      join pg_namespace nsp on nsp.oid = pgc.connamespace
      join pg_class cls on pgc.conrelid = cls.oid
      join information_schema.constraint_column_usage ccu on pgc.conname = ccu.constraint_name and nsp.nspname = ccu.constraint_schema
      where contype = 'c' and (ccu.table_name in ('orders','people') and ccu.table_schema = 'public')
      order by pgc.conname;

-- [7] catalogue | simple | sent 2x | by: generate entities; getUpdateSchemaSQL
-- result: schema_name name, table_name name, referenced_schema_name name, referenced_table_name name, column_name name, referenced_column_name name, constraint_name name, update_rule "char", delete_rule "char", ord integer, condeferrable boolean, condeferred boolean, constraint_def text
select nsp1.nspname schema_name, cls1.relname table_name, nsp2.nspname referenced_schema_name,
      cls2.relname referenced_table_name, a.attname column_name, af.attname referenced_column_name, conname constraint_name,
      confupdtype update_rule, confdeltype delete_rule, array_position(con.conkey,a.attnum) as ord, condeferrable, condeferred,
      pg_get_constraintdef(con.oid) as constraint_def
      from pg_attribute a
      join pg_constraint con on con.conrelid = a.attrelid AND a.attnum = ANY (con.conkey)
      join pg_attribute af on af.attnum = con.confkey[array_position(con.conkey,a.attnum)] AND af.attrelid = con.confrelid
      join pg_namespace nsp1 on nsp1.oid = con.connamespace
      join pg_class cls1 on cls1.oid = con.conrelid
      join pg_class cls2 on cls2.oid = confrelid
      join pg_namespace nsp2 on nsp2.oid = cls2.relnamespace
      where ((cls1.relname in ('orders','people') and nsp1.nspname = 'public'))
      and confrelid > 0
      order by nsp1.nspname, cls1.relname, constraint_name, ord;

-- [8] catalogue | simple | sent 1x | by: migrator
-- result: schema_name name
select schema_name from information_schema.schemata where "schema_name" not like 'pg_%' and "schema_name" not like 'crdb_%' and "schema_name" not like '_timescaledb_%' and "schema_name" not in ('information_schema', 'tiger', 'topology') order by schema_name;

-- [9] session | simple | sent 1x | by: init
-- result: version text
select version();

-- [10] session | simple | sent 2x | by: init; migrator
-- result: ?column? integer
select 1;

-- [11] session | simple | sent 1x | by: transactional
-- result: BEGIN
BEGIN;

-- [12] session | simple | sent 1x | by: transactional
-- result: SAVEPOINT
SAVEPOINT trx4;

-- [13] session | simple | sent 1x | by: transactional
-- result: RELEASE
RELEASE SAVEPOINT trx4;

-- [14] session | simple | sent 1x | by: transactional
-- result: COMMIT
COMMIT;

-- [15] data | simple | sent 1x | by: find
-- result: id text, doc jsonb
select "o0".* from "orders" as "o0" where "o0"."id" = 'o1' limit 3;

-- [16] data | simple | sent 2x | by: findAndCount; transactional
-- result: count bigint
select count(*) as "count" from "orders" as "o0";

-- [17] data | simple | sent 1x | by: findAndCount
-- result: id text, doc jsonb
select "o0".* from "orders" as "o0" limit 3;

-- [18] data | simple | sent 1x | by: insert/upsert/delete
-- result: INSERT n n
insert into "orders" ("doc", "id") values ('{}', 'mk1');

-- [19] data | simple | sent 1x | by: insert/upsert/delete
-- result: INSERT n n
insert into "orders" ("doc", "id") values ('{"a":1}', 'mk1') on conflict ("id") do update set "doc" = excluded."doc";

-- [20] data | simple | sent 1x | by: insert/upsert/delete
-- result: DELETE n
delete from "orders" where "id" = 'mk1';

-- [21] data | simple | sent 1x | by: migrator
-- result: CREATE TABLE
create table "public"."mikro_orm_migrations" ("id" serial primary key, "name" varchar(255), "executed_at" timestamptz default CURRENT_TIMESTAMP);

-- [22] data | simple | sent 1x | by: migrator
-- result: id integer, name character varying, executed_at timestamp with time zone
select * from "public"."mikro_orm_migrations" order by "id" asc;
