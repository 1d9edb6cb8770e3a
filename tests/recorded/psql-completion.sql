-- psql-completion: TAB completion of psql 15 (readline)
-- 53 statements: 53 catalogue

-- [1] catalogue | simple | sent 104x | by: SELECT * FROM pe<TAB>; SELECT * FROM <TAB>; SELECT * FROM "pe<TAB>; SELECT * FROM people JOIN or<TAB>; \di pe<TAB>; … (64 actions)
-- result: relname name, text text
SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'S', 'v', 'm', 'f', 'p') AND (c.relname) LIKE 'pe%' AND pg_catalog.pg_table_is_visible(c.oid) AND c.relnamespace <> (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog')
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'pe%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [2] catalogue | simple | sent 5x | by: SELECT * FROM public.<TAB>; SELECT * FROM pg_catalog.pg_cl<TAB>; SELECT * FROM information_schema.tab<TAB>
-- result: relname name, nspname name
SELECT c.relname, n.nspname FROM pg_catalog.pg_class c, pg_catalog.pg_namespace n WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'S', 'v', 'm', 'f', 'p') AND (c.relname) LIKE '%' AND n.nspname = 'public'
LIMIT 1000;

-- [3] catalogue | simple | sent 22x | by: SELECT * FROM people ORDER BY <TAB>; SELECT * FROM people WHERE <TAB>; SELECT * FROM people WHERE i<TAB>; CREATE INDEX i ON people (<TAB>; ALTER TABLE people ALTER COLUMN <TAB>; … (12 actions)
-- result: attname name, text text
SELECT a.attname, NULL::pg_catalog.text FROM pg_catalog.pg_attribute a, pg_catalog.pg_class c WHERE c.oid = a.attrelid and a.attnum > 0 and not a.attisdropped AND (a.attname) LIKE '%' AND c.relname = 'people' AND pg_catalog.pg_table_is_visible(c.oid)
LIMIT 1000;

-- [4] catalogue | simple | sent 19x | by: \d pe<TAB>; \d <TAB>; \d+ or<TAB>; \dc <TAB>; \dl<TAB>; … (10 actions)
-- result: relname name, text text
SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c WHERE (c.relname) LIKE 'pe%' AND pg_catalog.pg_table_is_visible(c.oid) AND c.relnamespace <> (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog')
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'pe%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [5] catalogue | simple | sent 2x | by: \d public.pe<TAB>
-- result: relname name, nspname name
SELECT c.relname, n.nspname FROM pg_catalog.pg_class c, pg_catalog.pg_namespace n WHERE c.relnamespace = n.oid AND (c.relname) LIKE 'pe%' AND n.nspname = 'public'
LIMIT 1000;

-- [6] catalogue | simple | sent 16x | by: \dn p<TAB>; DROP SCHEMA p<TAB>; ALTER TABLE people SET SCHEMA <TAB>; ALTER SCHEMA <TAB>; ALTER DEFAULT PRIVILEGES IN SCHEMA <TAB>; … (8 actions)
-- result: nspname name
SELECT nspname FROM pg_catalog.pg_namespace  WHERE nspname LIKE 'p%'
LIMIT 1000;

-- [7] catalogue | simple | sent 37x | by: \du r<TAB>; \dg w<TAB>; \c a<TAB>; \c app r<TAB>; \password r<TAB>; … (22 actions)
-- result: rolname name
SELECT rolname    FROM pg_catalog.pg_roles   WHERE rolname LIKE 'r%'
LIMIT 1000;

-- [8] catalogue | simple | sent 8x | by: \df lo<TAB>; DROP FUNCTION lo<TAB>; ALTER FUNCTION lo<TAB>; GRANT EXECUTE ON FUNCTION <TAB>
-- result: proname name, text text
SELECT p.proname, NULL::pg_catalog.text FROM pg_catalog.pg_proc p WHERE p.prokind != 'p' AND (p.proname) LIKE 'lo%' AND pg_catalog.pg_function_is_visible(p.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'lo%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [9] catalogue | simple | sent 7x | by: \da su<TAB>; DROP AGGREGATE <TAB>; CREATE AGGREGATE <TAB>; CALL <TAB>
-- result: proname name, text text
SELECT p.proname, NULL::pg_catalog.text FROM pg_catalog.pg_proc p WHERE p.prokind = 'a' AND (p.proname) LIKE 'su%' AND pg_catalog.pg_function_is_visible(p.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'su%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [10] catalogue | simple | sent 9x | by: \dT te<TAB>; \do =<TAB>; DROP TYPE <TAB>; ALTER TYPE <TAB>; COMMENT ON TRANSFORM FOR <TAB>
-- result: typname name, text text
SELECT t.typname, NULL::pg_catalog.text FROM pg_catalog.pg_type t WHERE (t.typrelid = 0  OR (SELECT c.relkind = 'c'     FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid)) AND t.typname !~ '^_' AND (t.typname) LIKE 'te%' AND pg_catalog.pg_type_is_visible(t.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'te%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [11] catalogue | simple | sent 4x | by: \dx p<TAB>; DROP EXTENSION <TAB>; ALTER EXTENSION <TAB>; COMMENT ON EXTENSION <TAB>
-- result: extname name
SELECT extname    FROM pg_catalog.pg_extension   WHERE extname LIKE 'p%'
LIMIT 1000;

-- [12] catalogue | simple | sent 6x | by: \dD <TAB>; DROP DOMAIN <TAB>; ALTER DOMAIN <TAB>
-- result: typname name, text text
SELECT t.typname, NULL::pg_catalog.text FROM pg_catalog.pg_type t WHERE t.typtype = 'd' AND (t.typname) LIKE '%' AND pg_catalog.pg_type_is_visible(t.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE '%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [13] catalogue | simple | sent 6x | by: \db p<TAB>; DROP TABLESPACE <TAB>; ALTER TABLE people SET TABLESPACE <TAB>
-- result: spcname name
SELECT spcname FROM pg_catalog.pg_tablespace  WHERE spcname LIKE 'p%'
LIMIT 1000;

-- [14] catalogue | simple | sent 3x | by: \dF e<TAB>; COMMENT ON TEXT SEARCH CONFIGURATION <TAB>
-- result: cfgname name, text text
SELECT c.cfgname, NULL::pg_catalog.text FROM pg_catalog.pg_ts_config c WHERE (c.cfgname) LIKE 'e%' AND pg_catalog.pg_ts_config_is_visible(c.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'e%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [15] catalogue | simple | sent 2x | by: \dFd s<TAB>
-- result: dictname name, text text
SELECT d.dictname, NULL::pg_catalog.text FROM pg_catalog.pg_ts_dict d WHERE (d.dictname) LIKE 's%' AND pg_catalog.pg_ts_dict_is_visible(d.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 's%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [16] catalogue | simple | sent 4x | by: \dew <TAB>; CREATE SERVER x FOREIGN DATA WRAPPER <TAB>
-- result: fdwname name
SELECT fdwname    FROM pg_catalog.pg_foreign_data_wrapper   WHERE fdwname LIKE '%'
LIMIT 1000;

-- [17] catalogue | simple | sent 8x | by: \des <TAB>; DROP SERVER <TAB>; CREATE FOREIGN TABLE x SERVER <TAB>; IMPORT FOREIGN SCHEMA x FROM SERVER <TAB>
-- result: srvname name
SELECT srvname    FROM pg_catalog.pg_foreign_server   WHERE srvname LIKE '%'
LIMIT 1000;

-- [18] catalogue | simple | sent 2x | by: \deu <TAB>
-- result: usename name
SELECT usename    FROM pg_catalog.pg_user_mappings   WHERE usename LIKE '%'
LIMIT 1000;

-- [19] catalogue | simple | sent 6x | by: \dAc b<TAB>; \dAo b<TAB>; \dA b<TAB>
-- result: amname name
SELECT amname    FROM pg_catalog.pg_am   WHERE amname LIKE 'b%'
LIMIT 1000;

-- [20] catalogue | simple | sent 3x | by: \dL p<TAB>; DROP LANGUAGE <TAB>
-- result: lanname name
SELECT lanname   FROM pg_catalog.pg_language  WHERE lanname != 'internal'    AND lanname LIKE 'p%'
LIMIT 1000;

-- [21] catalogue | simple | sent 4x | by: \dy <TAB>; COMMENT ON EVENT TRIGGER <TAB>
-- result: evtname name
SELECT evtname    FROM pg_catalog.pg_event_trigger   WHERE evtname LIKE '%'
LIMIT 1000;

-- [22] catalogue | simple | sent 4x | by: \dX <TAB>; ALTER STATISTICS <TAB>
-- result: stxname name, text text
SELECT s.stxname, NULL::pg_catalog.text FROM pg_catalog.pg_statistic_ext s WHERE (s.stxname) LIKE '%' AND pg_catalog.pg_statistics_obj_is_visible(s.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE '%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [23] catalogue | simple | sent 4x | by: \dconfig wo<TAB>; SHOW wo<TAB>; SHOW <TAB>
-- result: lower text
SELECT pg_catalog.lower(name) FROM pg_catalog.pg_settings  WHERE pg_catalog.lower(name) LIKE pg_catalog.lower('wo%')
LIMIT 1000;

-- [24] catalogue | simple | sent 14x | by: \l a<TAB>; \c a<TAB>; \connect <TAB>; DROP DATABASE a<TAB>; ALTER DATABASE a<TAB>; … (9 actions)
-- result: datname name
SELECT datname FROM pg_catalog.pg_database  WHERE datname LIKE 'a%'
LIMIT 1000;

-- [25] catalogue | simple | sent 4x | by: \sf lo<TAB>; \ef lo<TAB>
-- result: proname name, text text
SELECT p.proname, NULL::pg_catalog.text FROM pg_catalog.pg_proc p WHERE (p.proname) LIKE 'lo%' AND pg_catalog.pg_function_is_visible(p.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'lo%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [26] catalogue | simple | sent 2x | by: \encoding U<TAB>
-- result: pg_encoding_to_char name
SELECT DISTINCT pg_catalog.pg_encoding_to_char(conforencoding)    FROM pg_catalog.pg_conversion   WHERE pg_catalog.pg_encoding_to_char(conforencoding) LIKE pg_catalog.upper('U%')
LIMIT 1000;

-- [27] catalogue | simple | sent 2x | by: DROP TRIGGER <TAB>
-- result: tgname name
SELECT tgname FROM pg_catalog.pg_trigger WHERE tgname LIKE '%' AND NOT tgisinternal
LIMIT 1000;

-- [28] catalogue | simple | sent 2x | by: DROP POLICY <TAB>
-- result: polname name
SELECT polname    FROM pg_catalog.pg_policy   WHERE polname LIKE '%'
LIMIT 1000;

-- [29] catalogue | simple | sent 2x | by: DROP RULE <TAB>
-- result: rulename name
SELECT rulename FROM pg_catalog.pg_rules WHERE rulename LIKE '%'
LIMIT 1000;

-- [30] catalogue | simple | sent 2x | by: CREATE INDEX i ON people USING <TAB>
-- result: amname name
SELECT amname    FROM pg_catalog.pg_am   WHERE amname LIKE '%' AND    amtype='i'
LIMIT 1000;

-- [31] catalogue | simple | sent 2x | by: CREATE DATABASE x TEMPLATE <TAB>
-- result: datname name
SELECT d.datname   FROM pg_catalog.pg_database d  WHERE d.datname LIKE '%'    AND (d.datistemplate OR pg_catalog.pg_has_role(d.datdba, 'USAGE'))
LIMIT 1000;

-- [32] catalogue | simple | sent 2x | by: CREATE EXTENSION h<TAB>
-- result: name name
SELECT name    FROM pg_catalog.pg_available_extensions   WHERE name LIKE 'h%' AND installed_version IS NULL
LIMIT 1000;

-- [33] catalogue | simple | sent 3x | by: CREATE EXTENSION hstore VERSION <TAB>; ALTER EXTENSION plpgsql UPDATE TO <TAB>
-- result: version text
SELECT version    FROM pg_catalog.pg_available_extension_versions   WHERE version LIKE '%' AND name='hstore'
LIMIT 1000;

-- [34] catalogue | simple | sent 1x | by: ALTER TABLE people DROP CONSTRAINT <TAB>
-- result: conname name, text text
SELECT con.conname, NULL::pg_catalog.text FROM pg_catalog.pg_constraint con, pg_catalog.pg_class c1 WHERE con.conrelid=c1.oid AND (con.conname) LIKE '%' AND c1.relname = 'people' AND pg_catalog.pg_table_is_visible(c1.oid)
LIMIT 1000;

-- [35] catalogue | simple | sent 4x | by: ALTER TABLE people CLUSTER ON <TAB>; CLUSTER people USING <TAB>
-- result: relname name, text text
SELECT c2.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c1, pg_catalog.pg_class c2, pg_catalog.pg_index i WHERE c1.oid=i.indrelid and i.indexrelid=c2.oid AND (c2.relname) LIKE '%' AND c1.relname = 'people' AND pg_catalog.pg_table_is_visible(c1.oid)
LIMIT 1000;

-- [36] catalogue | simple | sent 1x | by: ALTER TABLE people ADD CONSTRAINT c UNIQUE USING INDEX <TAB>
-- result: relname name, text text
SELECT c2.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c1, pg_catalog.pg_class c2, pg_catalog.pg_index i WHERE c1.oid=i.indrelid and i.indexrelid=c2.oid and i.indisunique AND (c2.relname) LIKE '%' AND c1.relname = 'people' AND pg_catalog.pg_table_is_visible(c1.oid)
LIMIT 1000;

-- [37] catalogue | simple | sent 2x | by: ALTER TABLE people DISABLE TRIGGER <TAB>
-- result: tgname name, text text
SELECT t.tgname, NULL::pg_catalog.text FROM pg_catalog.pg_trigger t, pg_catalog.pg_class c1 WHERE t.tgrelid=c1.oid and not t.tgisinternal AND (t.tgname) LIKE '%' AND c1.relname = 'people' AND pg_catalog.pg_table_is_visible(c1.oid)
LIMIT 1000;

-- [38] catalogue | simple | sent 2x | by: ALTER TABLE people ENABLE RULE <TAB>
-- result: rulename name, text text
SELECT r.rulename, NULL::pg_catalog.text FROM pg_catalog.pg_rewrite r, pg_catalog.pg_class c1 WHERE r.ev_class=c1.oid AND (r.rulename) LIKE '%' AND c1.relname = 'people' AND pg_catalog.pg_table_is_visible(c1.oid)
LIMIT 1000;

-- [39] catalogue | simple | sent 2x | by: ALTER INDEX people_city ALTER COLUMN <TAB>
-- result: attnum text, text text
SELECT a.attnum::pg_catalog.text, NULL::pg_catalog.text FROM pg_catalog.pg_attribute a, pg_catalog.pg_class c WHERE c.oid = a.attrelid and a.attnum > 0 and not a.attisdropped AND (a.attnum::pg_catalog.text) LIKE '%' AND c.relname = 'people_city' AND pg_catalog.pg_table_is_visible(c.oid)
LIMIT 1000;

-- [40] catalogue | simple | sent 6x | by: ALTER ROLE reader SET <TAB>; ALTER DATABASE app SET <TAB>; SET wo<TAB>; RESET wo<TAB>
-- result: lower text
SELECT pg_catalog.lower(name) FROM pg_catalog.pg_settings  WHERE context IN ('user', 'superuser')    AND pg_catalog.lower(name) LIKE pg_catalog.lower('%')
LIMIT 1000;

-- [41] catalogue | simple | sent 1x | by: ALTER SYSTEM SET wo<TAB>
-- result: lower text
SELECT pg_catalog.lower(name) FROM pg_catalog.pg_settings  WHERE context != 'internal'    AND pg_catalog.lower(name) LIKE pg_catalog.lower('wo%')
LIMIT 1000;

-- [42] catalogue | simple | sent 2x | by: ALTER PUBLICATION <TAB>
-- result: pubname name
SELECT pubname    FROM pg_catalog.pg_publication   WHERE pubname LIKE '%'
LIMIT 1000;

-- [43] catalogue | simple | sent 2x | by: ALTER SUBSCRIPTION <TAB>
-- result: subname name
SELECT s.subname    FROM pg_catalog.pg_subscription s, pg_catalog.pg_database d   WHERE s.subname LIKE '%'     AND d.datname = pg_catalog.current_database()     AND s.subdbid = d.oid
LIMIT 1000;

-- [44] catalogue | simple | sent 2x | by: COMMENT ON CONSTRAINT <TAB>
-- result: conname name
SELECT conname   FROM pg_catalog.pg_constraint c  WHERE c.conrelid <> 0        and conname LIKE '%'
LIMIT 1000;

-- [45] catalogue | simple | sent 2x | by: COMMENT ON CONSTRAINT people_pkey ON <TAB>
-- result: relname name, text text
SELECT DISTINCT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c, pg_catalog.pg_constraint con WHERE c.oid=con.conrelid and c.relkind IN ('r', 'p') AND (c.relname) LIKE '%' AND pg_catalog.pg_table_is_visible(c.oid) AND con.conname = 'people_pkey'
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE '%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [46] catalogue | simple | sent 2x | by: SET TimeZone TO <TAB>
-- result: name text
SELECT pg_catalog.quote_literal(name) AS name   FROM pg_catalog.pg_timezone_names()  WHERE pg_catalog.lower(name) LIKE pg_catalog.lower('%')
LIMIT 1000;

-- [47] catalogue | simple | sent 2x | by: SET search_path TO <TAB>
-- result: nspname name
SELECT nspname FROM pg_catalog.pg_namespace  WHERE nspname LIKE '%' AND nspname NOT LIKE E'pg\\_toast%' AND nspname NOT LIKE E'pg\\_temp%'
LIMIT 1000;

-- [48] catalogue | simple | sent 2x | by: SET CONSTRAINTS <TAB>
-- result: conname name, text text
SELECT c.conname, NULL::pg_catalog.text FROM pg_catalog.pg_constraint c WHERE c.conrelid <> 0 AND (c.conname) LIKE '%'
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE '%' AND n.nspname NOT LIKE E'pg\\_%'
LIMIT 1000;

-- [49] catalogue | simple | sent 3x | by: EXECUTE <TAB>; DEALLOCATE <TAB>
-- result: name text
SELECT name    FROM pg_catalog.pg_prepared_statements   WHERE name LIKE '%'
LIMIT 1000;

-- [50] catalogue | simple | sent 5x | by: CLOSE <TAB>; FETCH FROM <TAB>; FETCH <TAB>
-- result: name text
SELECT name    FROM pg_catalog.pg_cursors   WHERE name LIKE '%'
LIMIT 1000;

-- [51] catalogue | simple | sent 3x | by: NOTIFY <TAB>; UNLISTEN <TAB>
-- result: channel text
SELECT channel    FROM pg_catalog.pg_listening_channels() AS channel   WHERE channel LIKE '%'
LIMIT 1000;

-- [52] catalogue | simple | sent 2x | by: ALTER TYPE t RENAME VALUE <TAB>
-- result: quote_literal text, text text
SELECT pg_catalog.quote_literal(enumlabel), NULL::pg_catalog.text FROM pg_catalog.pg_enum e, pg_catalog.pg_type t WHERE t.oid = e.enumtypid AND (pg_catalog.quote_literal(enumlabel)) LIKE '%' AND t.typname = 't' AND pg_catalog.pg_type_is_visible(t.oid)
LIMIT 1000;

-- [53] catalogue | simple | sent 2x | by: SELECT * FROM pg_<TAB>
-- result: relname name, text text
SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'S', 'v', 'm', 'f', 'p') AND (c.relname) LIKE 'pg\_%' AND pg_catalog.pg_table_is_visible(c.oid)
UNION ALL
SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'pg\_%'
LIMIT 1000;
