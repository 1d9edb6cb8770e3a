-- knex: knex 3.3.0
-- 39 statements: 4 catalogue, 8 session, 27 data

-- [1] catalogue | extended | sent 7x | by: hasTable; migrate.latest
-- parameters: $1 name (Parse says unspecified) = 'people'
-- result: table_catalog name, table_schema name, table_name name, table_type character varying, self_referencing_column_name name, reference_generation character varying, user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name name, is_insertable_into character varying, is_typed character varying, commit_action character varying
select * from information_schema.tables where table_name = $1 and table_schema = current_schema();

-- [2] catalogue | extended | sent 1x | by: hasColumn
-- parameters: $1 name (Parse says unspecified) = 'people', $2 name (Parse says unspecified) = 'doc'
-- result: table_catalog name, table_schema name, table_name name, column_name name, ordinal_position integer, column_default character varying, is_nullable character varying, data_type character varying, character_maximum_length integer, character_octet_length integer, numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type character varying, interval_precision integer, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality integer, dtd_identifier name, is_self_referencing character varying, is_identity character varying, identity_generation character varying, identity_start character varying, identity_increment character varying, identity_maximum character varying, identity_minimum character varying, identity_cycle character varying, is_generated character varying, generation_expression character varying, is_updatable character varying
select * from information_schema.columns where table_name = $1 and column_name = $2 and table_schema = current_schema();

-- [3] catalogue | extended | sent 1x | by: columnInfo
-- parameters: $1 name (Parse says unspecified) = 'people'
-- result: table_catalog name, table_schema name, table_name name, column_name name, ordinal_position integer, column_default character varying, is_nullable character varying, data_type character varying, character_maximum_length integer, character_octet_length integer, numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type character varying, interval_precision integer, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality integer, dtd_identifier name, is_self_referencing character varying, is_identity character varying, identity_generation character varying, identity_start character varying, identity_increment character varying, identity_maximum character varying, identity_minimum character varying, identity_cycle character varying, is_generated character varying, generation_expression character varying, is_updatable character varying
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = current_schema();

-- [4] catalogue | extended | sent 1x | by: columnInfo schema
-- parameters: $1 name (Parse says unspecified) = 'people', $2 name (Parse says unspecified) = 'public'
-- result: table_catalog name, table_schema name, table_name name, column_name name, ordinal_position integer, column_default character varying, is_nullable character varying, data_type character varying, character_maximum_length integer, character_octet_length integer, numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type character varying, interval_precision integer, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality integer, dtd_identifier name, is_self_referencing character varying, is_identity character varying, identity_generation character varying, identity_start character varying, identity_increment character varying, identity_maximum character varying, identity_minimum character varying, identity_cycle character varying, is_generated character varying, generation_expression character varying, is_updatable character varying
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = $2;

-- [5] session | simple | sent 1x | by: connect + raw
-- result: version text
select version();

-- [6] session | simple | sent 2x | by: connect + raw; transaction
-- result: ?column? integer
select 1;

-- [7] session | simple | sent 1x | by: transaction
-- result: BEGIN
BEGIN TRANSACTION ISOLATION LEVEL serializable;

-- [8] session | simple | sent 1x | by: transaction
-- result: SAVEPOINT
SAVEPOINT trx3;

-- [9] session | simple | sent 1x | by: transaction
-- result: ?column? integer
select 2;

-- [10] session | simple | sent 1x | by: transaction
-- result: RELEASE
RELEASE SAVEPOINT trx3;

-- [11] session | simple | sent 5x | by: transaction; migrate.latest; truncate-like: batchInsert
-- result: COMMIT
COMMIT;

-- [12] session | simple | sent 4x | by: migrate.latest; truncate-like: batchInsert
-- result: BEGIN
BEGIN;

-- [13] data | extended | sent 1x | by: select
-- parameters: $1 text (Parse says unspecified) = 'p1', $2 bigint (Parse says unspecified) = '3'
-- result: id text
select "id" from "people" where "id" = $1 limit $2;

-- [14] data | extended | sent 1x | by: first/count
-- parameters: $1 bigint (Parse says unspecified) = '1'
-- result: id text, doc jsonb
select * from "people" limit $1;

-- [15] data | simple | sent 1x | by: first/count
-- result: count bigint
select count(*) from "people";

-- [16] data | extended | sent 1x | by: insert returning
-- parameters: $1 jsonb (Parse says unspecified) = '{}', $2 text (Parse says unspecified) = 'k1'
-- result: id text, doc jsonb
insert into "orders" ("doc", "id") values ($1, $2) on conflict ("id") do update set "doc" = excluded."doc", "id" = excluded."id" returning *;

-- [17] data | extended | sent 1x | by: update
-- parameters: $1 jsonb (Parse says unspecified) = '{}', $2 text (Parse says unspecified) = 'k1'
-- result: UPDATE n
update "orders" set "doc" = $1 where "id" = $2;

-- [18] data | extended | sent 1x | by: delete
-- parameters: $1 text (Parse says unspecified) = 'k1'
-- result: DELETE n
delete from "orders" where "id" = $1;

-- [19] data | extended | sent 1x | by: whereIn, whereJsonPath
-- parameters: $1 text (Parse says unspecified) = 'a', $2 text (Parse says unspecified) = 'b', $3 jsonpath (Parse says unspecified) = '$.age', $4 integer (Parse says unspecified) = '3'
-- result: id text, doc jsonb
select * from "people" where "id" in ($1, $2) and jsonb_path_query_first("doc", $3)::int > $4;

-- [20] data | simple | sent 1x | by: createTable
-- result: CREATE TABLE
create table "tmp_kn" ("id" serial primary key, "a" varchar(255), "j" jsonb, "created_at" timestamptz not null default CURRENT_TIMESTAMP, "updated_at" timestamptz not null default CURRENT_TIMESTAMP);

-- [21] data | simple | sent 1x | by: createTable
-- result: CREATE INDEX
create index "tmp_kn_a_index" on "tmp_kn" ("a");

-- [22] data | simple | sent 1x | by: alterTable renameColumn
-- result: ALTER TABLE
alter table "tmp_kn" add column "z" integer null, add column "zz" integer;

-- [23] data | simple | sent 1x | by: alterTable renameColumn
-- result: ALTER TABLE
alter table "tmp_kn" rename "a" to "b";

-- [24] data | simple | sent 1x | by: migrate.latest
-- result: CREATE TABLE
create table "knex_migrations" ("id" serial primary key, "name" varchar(255), "batch" integer, "migration_time" timestamptz);

-- [25] data | simple | sent 1x | by: migrate.latest
-- result: CREATE TABLE
create table "knex_migrations_lock" ("index" serial primary key, "is_locked" integer);

-- [26] data | simple | sent 4x | by: migrate.latest
-- result: index integer, is_locked integer
select * from "knex_migrations_lock";

-- [27] data | extended | sent 1x | by: migrate.latest
-- parameters: $1 unspecified = '0'
-- result: INSERT n n
insert into "knex_migrations_lock" ("is_locked") values ($1);

-- [28] data | simple | sent 3x | by: migrate.latest
-- result: name character varying
select "name" from "knex_migrations" order by "id" asc;

-- [29] data | extended | sent 2x | by: migrate.latest
-- parameters: $1 unspecified = '1', $2 unspecified = '0'
-- result: UPDATE n
update "knex_migrations_lock" set "is_locked" = $1 where "is_locked" = $2;

-- [30] data | simple | sent 2x | by: migrate.latest
-- result: max_batch integer
select max("batch") as "max_batch" from "knex_migrations";

-- [31] data | simple | sent 1x | by: migrate.latest
-- result: CREATE TABLE
create table "tmp_kn2" ("id" serial primary key);

-- [32] data | extended | sent 1x | by: migrate.latest
-- parameters: $1 unspecified = '1', $2 unspecified = '<timestamp>', $3 unspecified = '1_a.js'
-- result: INSERT n n
insert into "knex_migrations" ("batch", "migration_time", "name") values ($1, $2, $3);

-- [33] data | extended | sent 2x | by: migrate.latest
-- parameters: $1 unspecified = '0'
-- result: UPDATE n
update "knex_migrations_lock" set "is_locked" = $1;

-- [34] data | simple | sent 1x | by: migrate.latest
-- result: id integer, name character varying, batch integer, migration_time timestamp with time zone
select * from "knex_migrations" where "batch" = (select max("batch") from "knex_migrations") order by "id" desc;

-- [35] data | simple | sent 1x | by: migrate.latest
-- result: DROP TABLE
drop table "tmp_kn2";

-- [36] data | extended | sent 1x | by: migrate.latest
-- parameters: $1 unspecified = '1_a.js'
-- result: DELETE n
delete from "knex_migrations" where "name" = $1;

-- [37] data | extended | sent 2x | by: truncate-like: batchInsert
-- parameters: $1 text (Parse says unspecified) = 'kb1'
-- result: INSERT n n
insert into "orders" ("id") values ($1);

-- [38] data | extended | sent 1x | by: stream
-- wire: Execute limit 100
-- result: id text, doc jsonb
select * from "people";

-- [39] data | extended | sent 1x | by: stream
-- parameters: $1 text (Parse says unspecified) = 'kb%'
-- result: DELETE n
delete from "orders" where "id" like $1;
