-- ruby-pg: ruby-pg 1.4.5
-- 2 statements: 1 catalogue, 1 data

-- [1] catalogue | simple | sent 1x | by: connect, BasicTypeMap
-- result: oid oid, typname name, typelem oid, typdelim "char", typinput name
SELECT t.oid, t.typname, t.typelem, t.typdelim, ti.proname AS typinput
				FROM pg_type as t
				JOIN pg_proc as ti ON ti.oid = t.typinput;

-- [2] data | extended | sent 1x | by: connect, BasicTypeMap
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- result: id text, doc jsonb
select id,doc from people where id=$1;
