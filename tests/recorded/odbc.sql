-- odbc: psqlODBC 13.02 of Debian, pyodbc 5.5.0
-- 38 statements: 16 catalogue, 19 session, 3 data

-- [1] catalogue | simple | sent 2x | by: connect; connect (UseDeclareFetch=1;Fetch=10;)
-- result: oid oid, typbasetype oid
select oid, typbasetype from pg_type where typname = 'lo';

-- [2] catalogue | simple | sent 7x | by: execute with parameters; foreignKeys; procedures; execute with parameters (UseDeclareFetch=1;Fetch=10;)
-- result: nspname name, relname name, attname name, atttypid oid, typname name, attnum smallint, attlen smallint, atttypmod integer, attnotnull boolean, relhasrules boolean, relkind "char", oid oid, pg_get_expr text, case oid, typtypmod integer, ?column? integer, attidentity "char", relhassubclass boolean
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.oid = <oid:people>) inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum;

-- [3] catalogue | simple | sent 2x | by: tables(); tables(tableType=TABLE)
-- result: relname name, nspname name, relkind "char"
select relname, nspname, relkind from pg_catalog.pg_class c, pg_catalog.pg_namespace n where relkind in ('r', 'v', 'm', 'f', 'p') and nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'pg_temp_1') and n.oid = relnamespace order by nspname, relname;

-- [4] catalogue | simple | sent 1x | by: tables(table=people)
-- result: relname name, nspname name, relkind "char"
select relname, nspname, relkind from pg_catalog.pg_class c, pg_catalog.pg_namespace n where relkind in ('r', 'v', 'm', 'f', 'p') and nspname like 'public' and relname like 'people' and nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'pg_temp_1') and n.oid = relnamespace order by nspname, relname;

-- [5] catalogue | simple | sent 1x | by: tables(schema=%)
-- result: ?column? text, nspname name, ?column? text
select NULL, nspname, NULL from pg_catalog.pg_namespace n where true and nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'pg_temp_1') order by nspname;

-- [6] catalogue | simple | sent 1x | by: columns(people)
-- result: nspname name, relname name, attname name, atttypid oid, typname name, attnum smallint, attlen smallint, atttypmod integer, attnotnull boolean, relhasrules boolean, relkind "char", oid oid, pg_get_expr text, case oid, typtypmod integer, ?column? integer, attidentity "char", relhassubclass boolean
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.relname like 'people' and n.nspname like 'public') inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum;

-- [7] catalogue | simple | sent 1x | by: columns()
-- result: nspname name, relname name, attname name, atttypid oid, typname name, attnum smallint, attlen smallint, atttypmod integer, attnotnull boolean, relhasrules boolean, relkind "char", oid oid, pg_get_expr text, case oid, typtypmod integer, ?column? integer, attidentity "char", relhassubclass boolean
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace) inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum;

-- [8] catalogue | simple | sent 2x | by: primaryKeys; primaryKeys(schema)
-- result: attname name, attnum smallint, relname name, nspname name, relname name
select ta.attname, ia.attnum, ic.relname, n.nspname, tc.relname from pg_catalog.pg_attribute ta, pg_catalog.pg_attribute ia, pg_catalog.pg_class tc, pg_catalog.pg_index i, pg_catalog.pg_namespace n, pg_catalog.pg_class ic where tc.relname = 'people' AND n.nspname = 'public' AND tc.oid = i.indrelid AND n.oid = tc.relnamespace AND i.indisprimary = 't' AND ia.attrelid = i.indexrelid AND ta.attrelid = i.indrelid AND ta.attnum = i.indkey[ia.attnum-1] AND (NOT ta.attisdropped) AND (NOT ia.attisdropped) AND ic.oid = i.indexrelid order by ia.attnum;

-- [9] catalogue | simple | sent 1x | by: foreignKeys
-- result: PKTABLE_CAT name, PKTABLE_SCHEM name, PKTABLE_NAME name, PKCOLUMN_NAME name, FKTABLE_CAT name, FKTABLE_SCHEM name, FKTABLE_NAME name, FKCOLUMN_NAME name, KEY_SEQ smallint, UPDATE_RULE smallint, DELETE_RULE smallint, FK_NAME name, PK_NAME name, DEFERRABILITY smallint
SAVEPOINT _EXEC_SVP_<address>;select	'app'::name as "PKTABLE_CAT",
	n2.nspname as "PKTABLE_SCHEM",
	c2.relname as "PKTABLE_NAME",
	a2.attname as "PKCOLUMN_NAME",
	'app'::name as "FKTABLE_CAT",
	n1.nspname as "FKTABLE_SCHEM",
	c1.relname as "FKTABLE_NAME",
	a1.attname as "FKCOLUMN_NAME",
	i::int2 as "KEY_SEQ",
	case ref.confupdtype
		when 'c' then 0::int2
		when 'n' then 2::int2
		when 'd' then 4::int2
		when 'r' then 1::int2
		else 3::int2
	end as "UPDATE_RULE",
	case ref.confdeltype
		when 'c' then 0::int2
		when 'n' then 2::int2
		when 'd' then 4::int2
		when 'r' then 1::int2
		else 3::int2
	end as "DELETE_RULE",
	ref.conname as "FK_NAME",
	cn.conname as "PK_NAME",
	case
		when ref.condeferrable then
			case
			when ref.condeferred then 5::int2
			else 6::int2
			end
		else 7::int2
	end as "DEFERRABILITY"
 from
 ((((((( (select cn.oid, conrelid, conkey, confrelid, confkey,
	 generate_series(array_lower(conkey, 1), array_upper(conkey, 1)) as i,
	 confupdtype, confdeltype, conname,
	 condeferrable, condeferred
  from pg_catalog.pg_constraint cn,
	pg_catalog.pg_class c,
	pg_catalog.pg_namespace n
  where contype = 'f' 
   and  confrelid = c.oid
   and  relname = 'people'
   and  n.oid = c.relnamespace
   and  n.nspname = 'public'
 ) ref
 inner join pg_catalog.pg_class c1
  on c1.oid = ref.conrelid)
 inner join pg_catalog.pg_namespace n1
  on  n1.oid = c1.relnamespace)
 inner join pg_catalog.pg_attribute a1
  on  a1.attrelid = c1.oid
  and  a1.attnum = conkey[i])
 inner join pg_catalog.pg_class c2
  on  c2.oid = ref.confrelid)
 inner join pg_catalog.pg_namespace n2
  on  n2.oid = c2.relnamespace)
 inner join pg_catalog.pg_attribute a2
  on  a2.attrelid = c2.oid
  and  a2.attnum = confkey[i])
 left outer join pg_catalog.pg_constraint cn
  on cn.conrelid = ref.confrelid
  and cn.contype = 'p')
  order by ref.oid, ref.i;

-- [10] catalogue | simple | sent 1x | by: foreignKeys(foreign)
-- result: PKTABLE_CAT name, PKTABLE_SCHEM name, PKTABLE_NAME name, PKCOLUMN_NAME name, FKTABLE_CAT name, FKTABLE_SCHEM name, FKTABLE_NAME name, FKCOLUMN_NAME name, KEY_SEQ smallint, UPDATE_RULE smallint, DELETE_RULE smallint, FK_NAME name, PK_NAME name, DEFERRABILITY smallint
RELEASE _EXEC_SVP_<address>;SAVEPOINT _EXEC_SVP_<address>;select	'app'::name as "PKTABLE_CAT",
	n2.nspname as "PKTABLE_SCHEM",
	c2.relname as "PKTABLE_NAME",
	a2.attname as "PKCOLUMN_NAME",
	'app'::name as "FKTABLE_CAT",
	n1.nspname as "FKTABLE_SCHEM",
	c1.relname as "FKTABLE_NAME",
	a1.attname as "FKCOLUMN_NAME",
	i::int2 as "KEY_SEQ",
	case ref.confupdtype
		when 'c' then 0::int2
		when 'n' then 2::int2
		when 'd' then 4::int2
		when 'r' then 1::int2
		else 3::int2
	end as "UPDATE_RULE",
	case ref.confdeltype
		when 'c' then 0::int2
		when 'n' then 2::int2
		when 'd' then 4::int2
		when 'r' then 1::int2
		else 3::int2
	end as "DELETE_RULE",
	ref.conname as "FK_NAME",
	cn.conname as "PK_NAME",
	case
		when ref.condeferrable then
			case
			when ref.condeferred then 5::int2
			else 6::int2
			end
		else 7::int2
	end as "DEFERRABILITY"
 from
 ((((((( (select cn.oid, conrelid, conkey, confrelid, confkey,
	 generate_series(array_lower(conkey, 1), array_upper(conkey, 1)) as i,
	 confupdtype, confdeltype, conname,
	 condeferrable, condeferred
  from pg_catalog.pg_constraint cn,
	pg_catalog.pg_class c,
	pg_catalog.pg_namespace n
  where contype = 'f' 
   and  conrelid = c.oid
   and  relname = 'orders'
   and  n.oid = c.relnamespace
   and  n.nspname = 'public'
 ) ref
 inner join pg_catalog.pg_class c1
  on c1.oid = ref.conrelid)
 inner join pg_catalog.pg_namespace n1
  on  n1.oid = c1.relnamespace)
 inner join pg_catalog.pg_attribute a1
  on  a1.attrelid = c1.oid
  and  a1.attnum = conkey[i])
 inner join pg_catalog.pg_class c2
  on  c2.oid = ref.confrelid)
 inner join pg_catalog.pg_namespace n2
  on  n2.oid = c2.relnamespace)
 inner join pg_catalog.pg_attribute a2
  on  a2.attrelid = c2.oid
  and  a2.attnum = confkey[i])
 left outer join pg_catalog.pg_constraint cn
  on cn.conrelid = ref.confrelid
  and cn.contype = 'p')
  order by ref.oid, ref.i;

-- [11] catalogue | simple | sent 2x | by: statistics; statistics(unique)
-- result: nspname name, relname name, attname name, atttypid oid, typname name, attnum smallint, attlen smallint, atttypmod integer, attnotnull boolean, relhasrules boolean, relkind "char", oid oid, pg_get_expr text, case oid, typtypmod integer, ?column? integer, attidentity "char", relhassubclass boolean
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.relname = 'people' and n.nspname = 'public') inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum;

-- [12] catalogue | simple | sent 2x | by: statistics; statistics(unique)
-- result: relname name, indkey int2vector, indisunique boolean, indisclustered boolean, amname name, relhasrules boolean, nspname name, oid oid, ?column? integer, indoption int2vector
select c.relname, i.indkey, i.indisunique, i.indisclustered, a.amname, c.relhasrules, n.nspname, c.oid, 0, i.indoption from pg_catalog.pg_index i, pg_catalog.pg_class c, pg_catalog.pg_class d, pg_catalog.pg_am a, pg_catalog.pg_namespace n where d.relname = 'people' and n.nspname = 'public' and n.oid = d.relnamespace and d.oid = i.indrelid and i.indexrelid = c.oid and c.relam = a.oid order by i.indisprimary desc, i.indisunique, n.nspname, c.relname;

-- [13] catalogue | simple | sent 3x | by: statistics
-- result: pg_get_indexdef text
select pg_get_indexdef(<oid:people_age>, 1, true);

-- [14] catalogue | simple | sent 2x | by: rowIdColumns; rowVerColumns
-- result: relhasrules boolean, relkind "char", relhasoids integer
select c.relhasrules, c.relkind, 0 as relhasoids from pg_catalog.pg_namespace u, pg_catalog.pg_class c where u.oid = c.relnamespace and c.relname = 'people' and u.nspname = 'public';

-- [15] catalogue | simple | sent 1x | by: procedures
-- result: procedure_cat character varying, procedure_schem name, procedure_name name, num_input_params character varying, num_output_params character varying, num_result_sets character varying, remarks character varying, procedure_type smallint
RELEASE _EXEC_SVP_<address>;SAVEPOINT _EXEC_SVP_<address>;select ''::varchar as PROCEDURE_CAT, nspname as PROCEDURE_SCHEM, proname as PROCEDURE_NAME, ''::varchar as NUM_INPUT_PARAMS, ''::varchar as NUM_OUTPUT_PARAMS, ''::varchar as NUM_RESULT_SETS, ''::varchar as REMARKS, case when prorettype = 0 then 1::int2 else 2::int2 end as PROCEDURE_TYPE from pg_catalog.pg_namespace, pg_catalog.pg_proc where pg_proc.pronamespace = pg_namespace.oid and nspname like 'public' and proname like 'lower';

-- [16] catalogue | simple | sent 1x | by: procedureColumns
-- result: proname name, proretset boolean, prorettype oid, pronargs smallint, proargtypes oidvector, nspname name, oid oid, atttypid oid, attname name, proargnames text[], proargmodes "char"[], proallargtypes oid[]
RELEASE _EXEC_SVP_<address>;SAVEPOINT _EXEC_SVP_<address>;select proname, proretset, prorettype, pronargs, proargtypes, nspname, p.oid, atttypid, attname, proargnames, proargmodes, proallargtypes from ((pg_catalog.pg_namespace n inner join pg_catalog.pg_proc p on p.pronamespace = n.oid) inner join pg_type t on t.oid = p.prorettype) left outer join pg_attribute a on a.attrelid = t.typrelid  and attnum > 0 and not attisdropped where has_function_privilege(p.oid, 'EXECUTE') and proname like 'lower' order by nspname, proname, p.oid, attnum;

-- [17] session | simple | sent 2x | by: connect; connect (UseDeclareFetch=1;Fetch=10;)
-- result: transaction_isolation text
SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isolation;

-- [18] session | simple | sent 1x | by: execute
-- result: ?column? integer
BEGIN;select 1;

-- [19] session | simple | sent 1x | by: execute with parameters
-- result: SAVEPOINT
SAVEPOINT _EXEC_SVP_<address>;

-- [20] session | simple | sent 2x | by: commit
-- result: COMMIT
COMMIT;

-- [21] session | simple | sent 2x | by: select many; autocommit execute
-- result: DEALLOCATE
DEALLOCATE "_PLAN<address>";

-- [22] session | simple | sent 1x | by: select many
-- result: id text
BEGIN;select id from people;

-- [23] session | simple | sent 1x | by: tables(table=people)
-- result: current_schema name
select current_schema();

-- [24] session | simple | sent 2x | by: tables(catalog=%); autocommit execute
-- result: ?column? text, ?column? text, ?column? text
select NULL, NULL, NULL;

-- [25] session | simple | sent 1x | by: columns()
-- result: max_identifier_length text
show max_identifier_length;

-- [26] session | simple | sent 1x | by: executemany
-- result: RELEASE, SAVEPOINT
RELEASE _EXEC_SVP_<address>;SAVEPOINT _EXEC_SVP_<address>;

-- [27] session | simple | sent 3x | by: rollback; error in transaction; select many (UseDeclareFetch=1;Fetch=10;)
-- result: ROLLBACK
ROLLBACK;

-- [28] session | simple | sent 1x | by: set isolation
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [29] session | simple | sent 1x | by: error in transaction
-- result: BEGIN
-- error on PostgreSQL: 42P01 relation "nosuch" does not exist
BEGIN;select * from nosuch;

-- [30] session | simple | sent 1x | by: execute (UseDeclareFetch=1;Fetch=10;)
-- result: ?column? integer
BEGIN;declare "SQL_CUR<address>" cursor with hold for select 1;fetch 10 in "SQL_CUR<address>";

-- [31] session | simple | sent 3x | by: execute with parameters (UseDeclareFetch=1;Fetch=10;); commit; select many (UseDeclareFetch=1;Fetch=10;)
-- result: CLOSE CURSOR
close "SQL_CUR<address>";

-- [32] session | simple | sent 1x | by: execute with parameters (UseDeclareFetch=1;Fetch=10;)
-- result: id text, doc jsonb
SAVEPOINT _EXEC_SVP_<address>;declare "SQL_CUR<address>" cursor with hold for select id,doc from people where id='p1';fetch 10 in "SQL_CUR<address>";

-- [33] session | simple | sent 1x | by: select many (UseDeclareFetch=1;Fetch=10;)
-- result: id text
BEGIN;declare "SQL_CUR<address>" cursor with hold for select id from people;fetch 10 in "SQL_CUR<address>";

-- [34] session | simple | sent 1x | by: select many (UseDeclareFetch=1;Fetch=10;)
-- result: id text
SAVEPOINT _EXEC_SVP_<address>;fetch 10 in "SQL_CUR<address>";

-- [35] session | simple | sent 4x | by: select many (UseDeclareFetch=1;Fetch=10;)
-- result: id text
fetch 10 in "SQL_CUR<address>";

-- [36] data | extended | sent 1x | by: execute with parameters
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: named statement
-- result: id text, doc jsonb
select id,doc from people where id=$1;

-- [37] data | simple | sent 1x | by: tables(types)
-- result: ?column? text, ?column? text, relkind text
select NULL, NULL, relkind from (select 'r' as relkind union select 'v' union select 'm' union select 'f' union select 'p') as a;

-- [38] data | extended | sent 1x | by: executemany
-- parameters: $1 text (Parse says unspecified) = 'q1', $2 jsonb (Parse says unspecified) = '{}'
-- wire: named statement
-- result: INSERT n n
insert into orders values($1,$2::jsonb) on conflict do nothing;
