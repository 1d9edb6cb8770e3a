-- dbt-postgres: dbt-core 1.9, dbt-postgres 1.9
-- 28 statements: 7 catalogue, 4 session, 17 data

-- [1] catalogue | simple | sent 3x | by: dbt seed; dbt run
-- result: nspname name
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "connection_name": "list_app"} */

    select distinct nspname from pg_namespace;

-- [2] catalogue | simple | sent 5x | by: dbt seed; dbt run; dbt test; dbt docs generate
-- result: database text, name name, schema name, type text
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "connection_name": "list_app_dbt_x"} */
select
      'app' as database,
      tablename as name,
      schemaname as schema,
      'table' as type
    from pg_tables
    where schemaname ilike 'dbt_x'
    union all
    select
      'app' as database,
      viewname as name,
      schemaname as schema,
      'view' as type
    from pg_views
    where schemaname ilike 'dbt_x'
    union all
    select
      'app' as database,
      matviewname as name,
      schemaname as schema,
      'materialized_view' as type
    from pg_matviews
    where schemaname ilike 'dbt_x';

-- [3] catalogue | simple | sent 5x | by: dbt seed; dbt run; dbt test; dbt docs generate
-- result: dependent_schema name, dependent_name name, referenced_schema name, referenced_name name
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "connection_name": "master"} */
select distinct
        dependent_namespace.nspname as dependent_schema,
        dependent_class.relname as dependent_name,
        referenced_namespace.nspname as referenced_schema,
        referenced_class.relname as referenced_name

    -- Query for views: views are entries in pg_class with an entry in pg_rewrite, but we avoid
    -- a seq scan on pg_rewrite by leveraging the fact there is an "internal" row in pg_depend for
    -- the view...
    from pg_class as dependent_class
    join pg_namespace as dependent_namespace on dependent_namespace.oid = dependent_class.relnamespace
    join pg_depend as dependent_depend on dependent_depend.refobjid = dependent_class.oid
        and dependent_depend.classid = 'pg_rewrite'::regclass
        and dependent_depend.refclassid = 'pg_class'::regclass
        and dependent_depend.deptype = 'i'

    -- ... and via pg_depend (that has a row per column, hence the need for "distinct" above, and
    -- making sure to exclude the internal row to avoid a view appearing to depend on itself)...
    join pg_depend as joining_depend on joining_depend.objid = dependent_depend.objid
        and joining_depend.classid = 'pg_rewrite'::regclass
        and joining_depend.refclassid = 'pg_class'::regclass
        and joining_depend.refobjid != dependent_depend.refobjid

    -- ... we can find the tables they query from in pg_class, but excluding system tables. Note we
    -- don't need need to exclude _dependent_ system tables, because they only query from other
    -- system tables, and so are automatically excluded by excluding _referenced_ system tables
    join pg_class as referenced_class on referenced_class.oid = joining_depend.refobjid
    join pg_namespace as referenced_namespace on referenced_namespace.oid = referenced_class.relnamespace
        and referenced_namespace.nspname != 'information_schema'
        and referenced_namespace.nspname not like 'pg\_%'

    order by
        dependent_schema, dependent_name, referenced_schema, referenced_name;

-- [4] catalogue | simple | sent 4x | by: dbt run
-- result: column_name name, data_type character varying, character_maximum_length integer, numeric_precision integer, numeric_scale integer
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.a"} */

      select
          column_name,
          data_type,
          character_maximum_length,
          numeric_precision,
          numeric_scale

      from "app".INFORMATION_SCHEMA.columns
      where table_name = 'a'
        
        and table_schema = 'dbt_x'
        
      order by ordinal_position;

-- [5] catalogue | simple | sent 1x | by: dbt run
-- result: column_name name, data_type character varying, character_maximum_length integer, numeric_precision integer, numeric_scale integer
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.c"} */

      select
          column_name,
          data_type,
          character_maximum_length,
          numeric_precision,
          numeric_scale

      from INFORMATION_SCHEMA.columns
      where table_name = 'c__dbt_tmp120342105893'
        
      order by ordinal_position;

-- [6] catalogue | simple | sent 2x | by: dbt run
-- result: column_name name, data_type character varying, character_maximum_length integer, numeric_precision integer, numeric_scale integer
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.c"} */

      select
          column_name,
          data_type,
          character_maximum_length,
          numeric_precision,
          numeric_scale

      from "app".INFORMATION_SCHEMA.columns
      where table_name = 'c'
        
        and table_schema = 'dbt_x'
        
      order by ordinal_position;

-- [7] catalogue | simple | sent 1x | by: dbt docs generate
-- result: table_database text, table_schema name, table_name name, table_type text, table_comment text, column_name name, column_index smallint, column_type text, column_comment text, table_owner name
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "connection_name": "app.information_schema"} */

    
    

    select
        'app' as table_database,
        sch.nspname as table_schema,
        tbl.relname as table_name,
        case tbl.relkind
            when 'v' then 'VIEW'
            when 'm' then 'MATERIALIZED VIEW'
            else 'BASE TABLE'
        end as table_type,
        tbl_desc.description as table_comment,
        col.attname as column_name,
        col.attnum as column_index,
        pg_catalog.format_type(col.atttypid, col.atttypmod) as column_type,
        col_desc.description as column_comment,
        pg_get_userbyid(tbl.relowner) as table_owner

    from pg_catalog.pg_namespace sch
    join pg_catalog.pg_class tbl on tbl.relnamespace = sch.oid
    join pg_catalog.pg_attribute col on col.attrelid = tbl.oid
    left outer join pg_catalog.pg_description tbl_desc on (tbl_desc.objoid = tbl.oid and tbl_desc.objsubid = 0)
    left outer join pg_catalog.pg_description col_desc on (col_desc.objoid = tbl.oid and col_desc.objsubid = col.attnum)
    where ((upper(sch.nspname) = upper('dbt_x') and
           upper(tbl.relname) = upper('b')) or (upper(sch.nspname) = upper('dbt_x') and
           upper(tbl.relname) = upper('c')) or (upper(sch.nspname) = upper('dbt_x') and
           upper(tbl.relname) = upper('a')) or (upper(sch.nspname) = upper('dbt_x') and
           upper(tbl.relname) = upper('z')))
      and not pg_is_other_temp_schema(sch.oid) -- not a temporary schema belonging to another session
      and tbl.relpersistence in ('p', 'u') -- [p]ermanent table or [u]nlogged table. Exclude [t]emporary tables
      and tbl.relkind in ('r', 'v', 'f', 'p', 'm') -- o[r]dinary table, [v]iew, [f]oreign table, [p]artitioned table, [m]aterialized view. Other values are [i]ndex, [S]equence, [c]omposite type, [t]OAST table
      and col.attnum > 0 -- negative numbers are used for system columns such as oid
      and not col.attisdropped -- column as not been dropped

    order by
        sch.nspname,
        tbl.relname,
        col.attnum;

-- [8] session | simple | sent 62x | by: dbt debug; dbt seed; dbt run; dbt test; dbt docs generate
-- result: BEGIN
BEGIN;

-- [9] session | simple | sent 1x | by: dbt debug
-- result: id integer
select 1 as id;

-- [10] session | simple | sent 16x | by: dbt seed; dbt run; dbt test
-- result: COMMIT
COMMIT;

-- [11] session | simple | sent 13x | by: dbt seed; dbt run; dbt test; dbt docs generate
-- result: ROLLBACK
ROLLBACK;

-- [12] data | simple | sent 1x | by: dbt seed
-- result: CREATE SCHEMA
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "connection_name": "create_app_dbt_x"} */
create schema if not exists "dbt_x";

-- [13] data | simple | sent 1x | by: dbt seed
-- result: CREATE TABLE
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "seed.p.z"} */

    create table "app"."dbt_x"."z" ("a" integer,"b" text);

-- [14] data | simple | sent 1x | by: dbt seed
-- result: INSERT n n
insert into "app"."dbt_x"."z" ("a", "b") values
          (1,'x');

-- [15] data | simple | sent 2x | by: dbt run
-- result: SELECT n
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.a"} */

  
    

  create  table "app"."dbt_x"."a__dbt_tmp"
  
  
    as
  
  (
    select id from public.people
  );

-- [16] data | simple | sent 2x | by: dbt run
-- result: ALTER TABLE
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.a"} */
alter table "app"."dbt_x"."a__dbt_tmp" rename to "a";

-- [17] data | simple | sent 2x | by: dbt run
-- result: COMMENT
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.a"} */

    
  
  comment on table "app"."dbt_x"."a" is $dbt_comment_literal_block$d$dbt_comment_literal_block$;

-- [18] data | simple | sent 2x | by: dbt run
-- result: COMMENT
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.a"} */

    
  
  
    
    
    comment on column "app"."dbt_x"."a".id is $dbt_comment_literal_block$x$dbt_comment_literal_block$;

-- [19] data | simple | sent 2x | by: dbt run
-- result: DROP TABLE
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.a"} */
drop table if exists "app"."dbt_x"."a__dbt_backup" cascade;

-- [20] data | simple | sent 2x | by: dbt run
-- result: CREATE VIEW
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.b"} */

  create view "app"."dbt_x"."b__dbt_tmp"
    
    
  as (
     select * from "app"."dbt_x"."a"
  );

-- [21] data | simple | sent 2x | by: dbt run
-- result: ALTER TABLE
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.b"} */
alter table "app"."dbt_x"."b__dbt_tmp" rename to "b";

-- [22] data | simple | sent 2x | by: dbt run
-- result: DROP VIEW
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.b"} */
drop view if exists "app"."dbt_x"."b__dbt_backup" cascade;

-- [23] data | simple | sent 1x | by: dbt run
-- result: SELECT n
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.c"} */

      
  
    

  create  table "app"."dbt_x"."c"
  
  
    as
  
  (
     select * from "app"."dbt_x"."a"
  );

-- [24] data | simple | sent 1x | by: dbt run
-- result: ALTER TABLE
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.a"} */
alter table "app"."dbt_x"."a" rename to "a__dbt_backup";

-- [25] data | simple | sent 1x | by: dbt run
-- result: SELECT n
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.c"} */

    
  
    

  create temporary table "c__dbt_tmp120342105893"
  
  
    as
  
  (
     select * from "app"."dbt_x"."a"
  );

-- [26] data | simple | sent 1x | by: dbt run
-- result: DELETE n, INSERT n n
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "model.p.c"} */

      
        
        
        delete from "app"."dbt_x"."c" as DBT_INTERNAL_DEST
        where (id) in (
            select distinct id
            from "c__dbt_tmp120342105893" as DBT_INTERNAL_SOURCE
        );

    

    insert into "app"."dbt_x"."c" ("id")
    (
        select "id"
        from "c__dbt_tmp120342105893"
    );

-- [27] data | simple | sent 1x | by: dbt test
-- result: failures bigint, should_warn boolean, should_error boolean
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "test.p.not_null_a_id.c1cebc1440"} */

    
    select
      count(*) as failures,
      count(*) != 0 as should_warn,
      count(*) != 0 as should_error
    from (
      
    
  
    
    



select id
from "app"."dbt_x"."a"
where id is null



  
  
      
    ) dbt_internal_test;

-- [28] data | simple | sent 1x | by: dbt test
-- result: failures bigint, should_warn boolean, should_error boolean
/* {"app": "dbt", "dbt_version": "1.9.11", "profile_name": "p", "target_name": "d", "node_id": "test.p.unique_a_id.f6a5f640da"} */

    
    select
      count(*) as failures,
      count(*) != 0 as should_warn,
      count(*) != 0 as should_error
    from (
      
    
  
    
    

select
    id as unique_field,
    count(*) as n_records

from "app"."dbt_x"."a"
where id is not null
group by id
having count(*) > 1



  
  
      
    ) dbt_internal_test;
