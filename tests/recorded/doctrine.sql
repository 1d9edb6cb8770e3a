-- doctrine: Doctrine DBAL of Debian (3.6.1+dfsg-1), pdo_pgsql
-- 26 statements: 17 catalogue, 6 session, 3 data

-- [1] catalogue | extended | sent 1x | by: listDatabases
-- result: datname name
SELECT datname FROM pg_database;

-- [2] catalogue | extended | sent 2x | by: listSchemaNames; listTableNames
-- result: schema_name name
SELECT schema_name
FROM   information_schema.schemata
WHERE  schema_name NOT LIKE 'pg\_%'
AND    schema_name != 'information_schema';

-- [3] catalogue | extended | sent 2x | by: listTableNames; tablesExist
-- parameters: $1 name (Parse says unspecified) = 'app'
-- result: table_name text, schema_name name
SELECT quote_ident(table_name) AS table_name,
       table_schema AS schema_name
FROM information_schema.tables
WHERE table_catalog = $1
  AND table_schema NOT LIKE 'pg\_%'
  AND table_schema != 'information_schema'
  AND table_name != 'geometry_columns'
  AND table_name != 'spatial_ref_sys'
  AND table_type = 'BASE TABLE';

-- [4] catalogue | extended | sent 2x | by: listTables; introspectSchema
-- result: table_name name, schema_name name, attnum smallint, field text, type name, complete_type text, collation text, domain_type name, domain_complete_type text, isnotnull boolean, pri text, default text, comment text
SELECT c.relname AS table_name, n.nspname AS schema_name,            a.attnum,
            quote_ident(a.attname) AS field,
            t.typname AS type,
            format_type(a.atttypid, a.atttypmod) AS complete_type,
            (SELECT tc.collcollate FROM pg_catalog.pg_collation tc WHERE tc.oid = a.attcollation) AS collation,
            (SELECT t1.typname FROM pg_catalog.pg_type t1 WHERE t1.oid = t.typbasetype) AS domain_type,
            (SELECT format_type(t2.typbasetype, t2.typtypmod) FROM
              pg_catalog.pg_type t2 WHERE t2.typtype = 'd' AND t2.oid = a.atttypid) AS domain_complete_type,
            a.attnotnull AS isnotnull,
            (SELECT 't'
             FROM pg_index
             WHERE c.oid = pg_index.indrelid
                AND pg_index.indkey[0] = a.attnum
                AND pg_index.indisprimary = 't'
            ) AS pri,
            (SELECT pg_get_expr(adbin, adrelid)
             FROM pg_attrdef
             WHERE c.oid = pg_attrdef.adrelid
                AND pg_attrdef.adnum=a.attnum
            ) AS default,
            (SELECT pg_description.description
                FROM pg_description WHERE pg_description.objoid = c.oid AND a.attnum = pg_description.objsubid
            ) AS comment
            FROM pg_attribute a
                INNER JOIN pg_class c
                    ON c.oid = a.attrelid
                INNER JOIN pg_type t
                    ON t.oid = a.atttypid
                INNER JOIN pg_namespace n
                    ON n.oid = c.relnamespace
                LEFT JOIN pg_depend d
                    ON d.objid = c.oid
                        AND d.deptype = 'e'
                        AND d.classid = (SELECT oid FROM pg_class WHERE relname = 'pg_class') WHERE a.attnum > 0 AND c.relkind = 'r' AND d.refobjid IS NULL AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY a.attnum;

-- [5] catalogue | extended | sent 2x | by: listTables; introspectSchema
-- result: table_name name, schema_name name, relname text, indisunique boolean, indisprimary boolean, indkey int2vector, indrelid oid, where text
SELECT tc.relname AS table_name, tn.nspname AS schema_name,                   quote_ident(ic.relname) AS relname,
                   i.indisunique,
                   i.indisprimary,
                   i.indkey,
                   i.indrelid,
                   pg_get_expr(indpred, indrelid) AS "where"
              FROM pg_index i
                   JOIN pg_class AS tc ON tc.oid = i.indrelid
                   JOIN pg_namespace tn ON tn.oid = tc.relnamespace
                   JOIN pg_class AS ic ON ic.oid = i.indexrelid
             WHERE ic.oid IN (
                SELECT indexrelid
                FROM pg_index i, pg_class c, pg_namespace n WHERE c.oid = i.indrelid AND c.relnamespace = n.oid AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast'));

-- [6] catalogue | extended | sent 2x | by: listTables; introspectSchema
-- result: table_name name, schema_name name, conname text, condef text
SELECT tc.relname AS table_name, tn.nspname AS schema_name,                  quote_ident(r.conname) as conname,
                  pg_get_constraintdef(r.oid, true) as condef
                  FROM pg_constraint r
                      JOIN pg_class AS tc ON tc.oid = r.conrelid
                      JOIN pg_namespace tn ON tn.oid = tc.relnamespace
                  WHERE r.conrelid IN
                  (
                      SELECT c.oid
                      FROM pg_class c, pg_namespace n WHERE n.oid = c.relnamespace AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')) AND r.contype = 'f';

-- [7] catalogue | extended | sent 2x | by: listTables; introspectSchema
-- result: relname name, comment text
SELECT c.relname,
       obj_description(c.oid, 'pg_class') AS comment
FROM pg_class c
     INNER JOIN pg_namespace n
         ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast');

-- [8] catalogue | extended | sent 9x | by: listTables; listTableIndexes; listTableDetails; introspectTable; introspectSchema
-- result: attnum smallint, attname name
SELECT attnum, attname FROM pg_attribute WHERE attrelid=<oid:people> AND attnum IN (0) ORDER BY attnum ASC;

-- [9] catalogue | extended | sent 5x | by: listTables; listTableIndexes; listTableDetails; introspectTable; introspectSchema
-- result: attnum smallint, attname name
SELECT attnum, attname FROM pg_attribute WHERE attrelid=<oid:people> AND attnum IN (0 ,0) ORDER BY attnum ASC;

-- [10] catalogue | extended | sent 7x | by: listTables; listTableIndexes; listTableDetails; introspectTable; introspectSchema
-- result: attnum smallint, attname name
SELECT attnum, attname FROM pg_attribute WHERE attrelid=<oid:people> AND attnum IN (1) ORDER BY attnum ASC;

-- [11] catalogue | extended | sent 1x | by: listViews
-- result: viewname text, schemaname name, definition character varying
SELECT quote_ident(table_name) AS viewname,
                       table_schema AS schemaname,
                       view_definition AS definition
                FROM   information_schema.views
                WHERE  view_definition IS NOT NULL;

-- [12] catalogue | extended | sent 2x | by: listSequences; introspectSchema
-- result: relname name, schemaname name, min_value character varying, increment_by character varying
SELECT sequence_name AS relname,
                       sequence_schema AS schemaname,
                       minimum_value AS min_value,
                       increment AS increment_by
                FROM   information_schema.sequences
                WHERE  sequence_catalog = 'app'
                AND    sequence_schema NOT LIKE 'pg\_%'
                AND    sequence_schema != 'information_schema';

-- [13] catalogue | extended | sent 3x | by: listTableColumns; listTableDetails; introspectTable
-- result: attnum smallint, field text, type name, complete_type text, collation text, domain_type name, domain_complete_type text, isnotnull boolean, pri text, default text, comment text
SELECT            a.attnum,
            quote_ident(a.attname) AS field,
            t.typname AS type,
            format_type(a.atttypid, a.atttypmod) AS complete_type,
            (SELECT tc.collcollate FROM pg_catalog.pg_collation tc WHERE tc.oid = a.attcollation) AS collation,
            (SELECT t1.typname FROM pg_catalog.pg_type t1 WHERE t1.oid = t.typbasetype) AS domain_type,
            (SELECT format_type(t2.typbasetype, t2.typtypmod) FROM
              pg_catalog.pg_type t2 WHERE t2.typtype = 'd' AND t2.oid = a.atttypid) AS domain_complete_type,
            a.attnotnull AS isnotnull,
            (SELECT 't'
             FROM pg_index
             WHERE c.oid = pg_index.indrelid
                AND pg_index.indkey[0] = a.attnum
                AND pg_index.indisprimary = 't'
            ) AS pri,
            (SELECT pg_get_expr(adbin, adrelid)
             FROM pg_attrdef
             WHERE c.oid = pg_attrdef.adrelid
                AND pg_attrdef.adnum=a.attnum
            ) AS default,
            (SELECT pg_description.description
                FROM pg_description WHERE pg_description.objoid = c.oid AND a.attnum = pg_description.objsubid
            ) AS comment
            FROM pg_attribute a
                INNER JOIN pg_class c
                    ON c.oid = a.attrelid
                INNER JOIN pg_type t
                    ON t.oid = a.atttypid
                INNER JOIN pg_namespace n
                    ON n.oid = c.relnamespace
                LEFT JOIN pg_depend d
                    ON d.objid = c.oid
                        AND d.deptype = 'e'
                        AND d.classid = (SELECT oid FROM pg_class WHERE relname = 'pg_class') WHERE a.attnum > 0 AND c.relkind = 'r' AND d.refobjid IS NULL AND n.nspname = ANY(current_schemas(false)) AND c.relname = 'people' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY a.attnum;

-- [14] catalogue | extended | sent 3x | by: listTableIndexes; listTableDetails; introspectTable
-- result: relname text, indisunique boolean, indisprimary boolean, indkey int2vector, indrelid oid, where text
SELECT                   quote_ident(ic.relname) AS relname,
                   i.indisunique,
                   i.indisprimary,
                   i.indkey,
                   i.indrelid,
                   pg_get_expr(indpred, indrelid) AS "where"
              FROM pg_index i
                   JOIN pg_class AS tc ON tc.oid = i.indrelid
                   JOIN pg_namespace tn ON tn.oid = tc.relnamespace
                   JOIN pg_class AS ic ON ic.oid = i.indexrelid
             WHERE ic.oid IN (
                SELECT indexrelid
                FROM pg_index i, pg_class c, pg_namespace n WHERE c.oid = i.indrelid AND c.relnamespace = n.oid AND n.nspname = ANY(current_schemas(false)) AND c.relname = 'people' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast'));

-- [15] catalogue | extended | sent 3x | by: listTableForeignKeys; listTableDetails; introspectTable
-- result: conname text, condef text
SELECT                  quote_ident(r.conname) as conname,
                  pg_get_constraintdef(r.oid, true) as condef
                  FROM pg_constraint r
                      JOIN pg_class AS tc ON tc.oid = r.conrelid
                      JOIN pg_namespace tn ON tn.oid = tc.relnamespace
                  WHERE r.conrelid IN
                  (
                      SELECT c.oid
                      FROM pg_class c, pg_namespace n WHERE n.oid = c.relnamespace AND n.nspname = ANY(current_schemas(false)) AND c.relname = 'people' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')) AND r.contype = 'f';

-- [16] catalogue | extended | sent 2x | by: listTableDetails; introspectTable
-- result: relname name, comment text
SELECT c.relname,
       obj_description(c.oid, 'pg_class') AS comment
FROM pg_class c
     INNER JOIN pg_namespace n
         ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = ANY(current_schemas(false)) AND c.relname = 'people' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast');

-- [17] catalogue | extended | sent 1x | by: introspectSchema
-- result: nspname name
SELECT schema_name AS nspname
                FROM   information_schema.schemata
                WHERE  schema_name NOT LIKE 'pg\_%'
                AND    schema_name != 'information_schema';

-- [18] session | extended | sent 1x | by: connect
-- result: ?column? integer
select 1;

-- [19] session | extended | sent 16x | by: listTableNames; listTables; listViews; listSequences; listTableColumns; … (11 actions)
-- result: current_database name
SELECT CURRENT_DATABASE();

-- [20] session | extended | sent 2x | by: listTableNames; introspectSchema
-- result: search_path text
SHOW search_path;

-- [21] session | simple | sent 1x | by: transaction
-- result: BEGIN
BEGIN;

-- [22] session | simple | sent 1x | by: setTransactionIsolation
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [23] session | simple | sent 1x | by: setTransactionIsolation
-- result: ROLLBACK
ROLLBACK;

-- [24] data | extended | sent 1x | by: insert/update/delete
-- parameters: $1 text (Parse says unspecified) = 'doc1'
-- result: INSERT n n
INSERT INTO orders (id) VALUES ($1);

-- [25] data | extended | sent 1x | by: insert/update/delete
-- parameters: $1 jsonb (Parse says unspecified) = '{}', $2 text (Parse says unspecified) = 'doc1'
-- result: UPDATE n
UPDATE orders SET doc = $1 WHERE id = $2;

-- [26] data | extended | sent 1x | by: insert/update/delete
-- parameters: $1 text (Parse says unspecified) = 'doc1'
-- result: DELETE n
DELETE FROM orders WHERE id = $1;
