-- kysely: kysely 0.28.19
-- 16 statements: 3 catalogue, 3 session, 10 data

-- [1] catalogue | simple | sent 1x | by: introspection.getSchemas
-- result: nspname name
select "nspname" from "pg_catalog"."pg_namespace";

-- [2] catalogue | extended | sent 1x | by: introspection.getTables
-- parameters: $1 "char" (Parse says unspecified) = 'r', $2 "char" (Parse says unspecified) = 'v', $3 "char" (Parse says unspecified) = 'p', $4 text (Parse says unspecified) = '^pg_', $5 name (Parse says unspecified) = 'information_schema', $6 name (Parse says unspecified) = 'crdb_internal', $7 smallint (Parse says unspecified) = '0', $8 boolean (Parse says unspecified) = 'true', $9 name (Parse says unspecified) = 'kysely_migration', $10 name (Parse says unspecified) = 'kysely_migration_lock'
-- result: column name, not_null boolean, has_default boolean, table name, table_type "char", schema name, type name, type_schema name, column_description text, auto_incrementing text
select "a"."attname" as "column", "a"."attnotnull" as "not_null", "a"."atthasdef" as "has_default", "c"."relname" as "table", "c"."relkind" as "table_type", "ns"."nspname" as "schema", "typ"."typname" as "type", "dtns"."nspname" as "type_schema", col_description(a.attrelid, a.attnum) as "column_description", pg_get_serial_sequence(quote_ident(ns.nspname) || '.' || quote_ident(c.relname), a.attname) as "auto_incrementing" from "pg_catalog"."pg_attribute" as "a" inner join "pg_catalog"."pg_class" as "c" on "a"."attrelid" = "c"."oid" inner join "pg_catalog"."pg_namespace" as "ns" on "c"."relnamespace" = "ns"."oid" inner join "pg_catalog"."pg_type" as "typ" on "a"."atttypid" = "typ"."oid" inner join "pg_catalog"."pg_namespace" as "dtns" on "typ"."typnamespace" = "dtns"."oid" where "c"."relkind" in ($1, $2, $3) and "ns"."nspname" !~ $4 and "ns"."nspname" != $5 and "ns"."nspname" != $6 and has_schema_privilege(ns.nspname, 'USAGE') and "a"."attnum" >= $7 and "a"."attisdropped" != $8 and "c"."relname" != $9 and "c"."relname" != $10 order by "ns"."nspname", "c"."relname", "a"."attnum";

-- [3] catalogue | extended | sent 3x | by: introspection.getTables(internal); migrateToLatest
-- parameters: $1 "char" (Parse says unspecified) = 'r', $2 "char" (Parse says unspecified) = 'v', $3 "char" (Parse says unspecified) = 'p', $4 text (Parse says unspecified) = '^pg_', $5 name (Parse says unspecified) = 'information_schema', $6 name (Parse says unspecified) = 'crdb_internal', $7 smallint (Parse says unspecified) = '0', $8 boolean (Parse says unspecified) = 'true'
-- result: column name, not_null boolean, has_default boolean, table name, table_type "char", schema name, type name, type_schema name, column_description text, auto_incrementing text
select "a"."attname" as "column", "a"."attnotnull" as "not_null", "a"."atthasdef" as "has_default", "c"."relname" as "table", "c"."relkind" as "table_type", "ns"."nspname" as "schema", "typ"."typname" as "type", "dtns"."nspname" as "type_schema", col_description(a.attrelid, a.attnum) as "column_description", pg_get_serial_sequence(quote_ident(ns.nspname) || '.' || quote_ident(c.relname), a.attname) as "auto_incrementing" from "pg_catalog"."pg_attribute" as "a" inner join "pg_catalog"."pg_class" as "c" on "a"."attrelid" = "c"."oid" inner join "pg_catalog"."pg_namespace" as "ns" on "c"."relnamespace" = "ns"."oid" inner join "pg_catalog"."pg_type" as "typ" on "a"."atttypid" = "typ"."oid" inner join "pg_catalog"."pg_namespace" as "dtns" on "typ"."typnamespace" = "dtns"."oid" where "c"."relkind" in ($1, $2, $3) and "ns"."nspname" !~ $4 and "ns"."nspname" != $5 and "ns"."nspname" != $6 and has_schema_privilege(ns.nspname, 'USAGE') and "a"."attnum" >= $7 and "a"."attisdropped" != $8 order by "ns"."nspname", "c"."relname", "a"."attnum";

-- [4] session | simple | sent 1x | by: migrateToLatest
-- result: BEGIN
begin;

-- [5] session | simple | sent 1x | by: migrateToLatest
-- result: COMMIT
commit;

-- [6] session | simple | sent 1x | by: migrateToLatest
-- result: pg_advisory_unlock boolean
select pg_advisory_unlock(<n>);

-- [7] data | extended | sent 1x | by: select
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- result: id text, doc jsonb
select * from "people" where "id" = $1;

-- [8] data | extended | sent 1x | by: insert
-- parameters: $1 text (Parse says unspecified) = 'ky1', $2 jsonb (Parse says unspecified) = '{}'
-- result: id text
insert into "orders" ("id", "doc") values ($1, $2) returning "id";

-- [9] data | extended | sent 1x | by: delete
-- parameters: $1 text (Parse says unspecified) = 'ky1'
-- result: DELETE n
delete from "orders" where "id" = $1;

-- [10] data | simple | sent 1x | by: migrateToLatest
-- result: CREATE TABLE
create table if not exists "kysely_migration" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null);

-- [11] data | simple | sent 1x | by: migrateToLatest
-- result: CREATE TABLE
create table if not exists "kysely_migration_lock" ("id" varchar(255) not null primary key, "is_locked" integer default 0 not null);

-- [12] data | extended | sent 1x | by: migrateToLatest
-- parameters: $1 unspecified = 'migration_lock'
-- result: id character varying
select "id" from "kysely_migration_lock" where "id" = $1;

-- [13] data | extended | sent 1x | by: migrateToLatest
-- parameters: $1 unspecified = 'migration_lock', $2 unspecified = '0'
-- result: INSERT n n
insert into "kysely_migration_lock" ("id", "is_locked") values ($1, $2);

-- [14] data | simple | sent 1x | by: migrateToLatest
-- result: pg_advisory_lock void
with set_timeout as (
      select set_config('lock_timeout', '3600000', true) as config_val
    )
    select pg_advisory_lock(<n>)
    from set_timeout;

-- [15] data | simple | sent 1x | by: migrateToLatest
-- result: name character varying, timestamp character varying
select "name", "timestamp" from "kysely_migration";

-- [16] data | extended | sent 1x | by: migrateToLatest
-- parameters: $1 unspecified = 'a', $2 unspecified = '<timestamp>'
-- result: INSERT n n
insert into "kysely_migration" ("name", "timestamp") values ($1, $2);
