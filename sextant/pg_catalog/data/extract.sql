-- Prints the fixed part of PostgreSQL's catalogue as the files of this folder. Run it with
-- `psql -X -q -f extract.sql` in an empty database of PostgreSQL 16, in the folder of the files.
-- The types are those that Sextant sends or that a column of the catalogue has.
create temp table chosen_type as select t.oid, t.typname from pg_type t where t.typname in (
  'bool','bytea','char','name','int8','int2','int2vector','int4','regproc','text','oid','tid','xid','cid','oidvector','json','xml',
  'pg_node_tree','jsonb','jsonpath','float4','float8','unknown','bpchar','varchar','date','time','timestamp','timestamptz','timetz','interval',
  'numeric','uuid','record','refcursor','regprocedure','regoper','regoperator','regclass','regtype','regrole','regnamespace','regcollation',
  'regconfig','regdictionary','aclitem','pg_lsn','xid8','inet','cidr','cstring','any','anyarray','anyelement','anynonarray','anyenum','anyrange',
  'anycompatible','anycompatiblearray','anycompatiblenonarray','void','trigger','event_trigger','internal','language_handler',
  'pg_ndistinct','pg_dependencies','pg_mcv_list','pg_snapshot','money','point','bit','varbit',
  '_record', 'sql_identifier','character_data','cardinal_number','yes_or_no','time_stamp');
insert into chosen_type select a.oid, a.typname from pg_type a join chosen_type c on a.typelem = c.oid and a.typcategory = 'A'
  and a.oid not in (select oid from chosen_type);
\set names `paste -sd, functions.txt`
create temp table chosen_function as select p.oid from pg_proc p where p.pronamespace in (11, 'information_schema'::regnamespace)
  and p.prorettype in (select oid from chosen_type) and not exists (select from unnest(p.proargtypes) a where a not in (select oid from chosen_type))
  and p.prokind in ('f', 'a', 'w') and not 'internal'::regtype = any(p.proargtypes) and p.prorettype <> 'internal'::regtype
  and not p.proargtypes::oid[] && array['anyrange'::regtype, 'anyenum'::regtype]::oid[]
  and p.proname = any (string_to_array(:'names', ','));
\copy (select t.oid, t.typname, n.nspname, t.typlen, t.typbyval, t.typtype, t.typcategory, t.typispreferred, t.typdelim, t.typelem, t.typarray, t.typalign, t.typstorage, t.typbasetype, t.typtypmod, t.typcollation, replace(t.typinput::text, '-', ''), replace(t.typoutput::text, '-', ''), replace(t.typreceive::text, '-', ''), replace(t.typsend::text, '-', '') from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.oid in (select oid from chosen_type) order by t.oid) to 'types.tsv'
\copy (select castsource, casttarget, castcontext, castmethod from pg_cast where castsource in (select oid from chosen_type) and casttarget in (select oid from chosen_type) order by 1, 2) to 'casts.tsv'
\copy (select oid, oprname, oprleft, oprright, oprresult, oprcom, oprnegate, oprcode::text from pg_operator where (oprleft = 0 or oprleft in (select oid from chosen_type)) and oprright in (select oid from chosen_type) and oprresult in (select oid from chosen_type) order by oprname, oprleft, oprright) to 'operators.tsv'
\copy (select p.oid, n.nspname, p.proname, p.prokind, p.proretset, p.proisstrict, p.provolatile, p.provariadic, p.pronargdefaults, p.prorettype, array_to_string(p.proargtypes::oid[], ' '), coalesce(array_to_string(p.proallargtypes, ' '), ''), coalesce(array_to_string(p.proargmodes, ''), ''), coalesce(array_to_string(p.proargnames, ' ', ''), '') from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.oid in (select oid from chosen_function) order by p.proname, p.oid) to 'functions.tsv'
\copy (select n.nspname, c.relname, c.oid, c.relkind, c.reltype from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'v') order by 1, 2) to 'relations.tsv'
\copy (select n.nspname, c.relname, a.attnum, a.attname, case when a.atttypid in (select oid from chosen_type) then a.atttypid else 'anyarray'::regtype::oid end, a.atttypmod, a.attnotnull, a.attcollation from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid where n.nspname in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'v') and a.attnum > 0 order by 1, 2, 3) to 'columns.tsv'
\copy (select distinct p.oid, p.proname, p.prorettype, array_to_string(p.proargtypes::oid[], ' ') from pg_type t join pg_proc p on p.oid in (t.typinput, t.typoutput, t.typreceive, t.typsend) where t.oid in (select oid from chosen_type) or t.typname = 'record' order by 1) to 'io_functions.tsv'
\copy (select oid, opcname, opcfamily, opcintype, opcdefault, opckeytype from pg_opclass where opcmethod = 403 and opcintype in (select oid from chosen_type) order by oid) to 'operator_classes.tsv'
\copy (select f.oid, f.opfname from pg_opfamily f where f.oid in (select opcfamily from pg_opclass where opcmethod = 403 and opcintype in (select oid from chosen_type)) order by oid) to 'operator_families.tsv'
\copy (select word, catcode, barelabel from pg_get_keywords() order by word) to 'keywords.tsv'
