-- peewee: peewee 4.5.3
-- 9 statements: 9 catalogue

-- [1] catalogue | simple | sent 3x | by: get_tables; table_exists; pwiz introspect
-- result: tablename name
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = COALESCE(NULL, current_schema()) ORDER BY tablename;

-- [2] catalogue | simple | sent 1x | by: get_views
-- result: viewname name, definition text
SELECT viewname, definition FROM pg_catalog.pg_views WHERE schemaname = COALESCE(NULL, current_schema()) ORDER BY viewname;

-- [3] catalogue | simple | sent 3x | by: get_indexes; pwiz introspect
-- result: relname name, indexdef text, indisunique boolean, array text[]
SELECT
                i.relname, idxs.indexdef, idx.indisunique,
                ARRAY(
                    SELECT pg_get_indexdef(idx.indexrelid, k + 1, TRUE)
                    FROM generate_subscripts(idx.indkey, 1) AS k
                    ORDER BY k)
            FROM pg_catalog.pg_class AS t
            INNER JOIN pg_catalog.pg_namespace AS n ON t.relnamespace = n.oid
            INNER JOIN pg_catalog.pg_index AS idx ON t.oid = idx.indrelid
            INNER JOIN pg_catalog.pg_class AS i ON idx.indexrelid = i.oid
            INNER JOIN pg_catalog.pg_indexes AS idxs ON (
                idxs.tablename = t.relname
                AND idxs.indexname = i.relname
                AND idxs.schemaname = n.nspname)
            WHERE t.relname = 'people' AND t.relkind = 'r'
                AND n.nspname = COALESCE(NULL, current_schema())
            ORDER BY idx.indisunique DESC, i.relname;

-- [4] catalogue | simple | sent 3x | by: get_columns; pwiz introspect
-- result: column_name name, is_nullable character varying, data_type character varying, column_default character varying, format_type text, is_identity character varying
SELECT c.column_name, c.is_nullable, c.data_type,
                c.column_default,
                pg_catalog.format_type(a.atttypid, a.atttypmod),
                c.is_identity
            FROM information_schema.columns AS c
            INNER JOIN pg_catalog.pg_namespace AS n
                ON (n.nspname = c.table_schema)
            INNER JOIN pg_catalog.pg_class AS t
                ON (t.relname = c.table_name AND t.relnamespace = n.oid)
            INNER JOIN pg_catalog.pg_attribute AS a
                ON (a.attrelid = t.oid AND a.attname = c.column_name)
            WHERE c.table_name = 'people'
                AND c.table_schema = COALESCE(NULL, current_schema())
                AND NOT a.attisdropped
            ORDER BY c.ordinal_position;

-- [5] catalogue | simple | sent 6x | by: get_columns; get_primary_keys; pwiz introspect
-- result: column_name name
SELECT kc.column_name
            FROM information_schema.table_constraints AS tc
            INNER JOIN information_schema.key_column_usage AS kc ON (
                tc.table_name = kc.table_name AND
                tc.table_schema = kc.table_schema AND
                tc.constraint_name = kc.constraint_name)
            WHERE
                tc.constraint_type = 'PRIMARY KEY' AND
                tc.table_name = 'people' AND
                tc.table_schema = COALESCE(NULL, current_schema())
            ORDER BY kc.ordinal_position;

-- [6] catalogue | simple | sent 3x | by: get_foreign_keys; pwiz introspect
-- result: column_name name, table_name name, column_name name, constraint_name name, delete_rule character varying, update_rule character varying
SELECT DISTINCT
                kcu.column_name, ccu.table_name, ccu.column_name,
                tc.constraint_name, rc.delete_rule, rc.update_rule
            FROM information_schema.table_constraints AS tc
            JOIN information_schema.key_column_usage AS kcu
                ON (tc.constraint_name = kcu.constraint_name AND
                    tc.constraint_schema = kcu.constraint_schema AND
                    tc.table_name = kcu.table_name AND
                    tc.table_schema = kcu.table_schema)
            JOIN information_schema.constraint_column_usage AS ccu
                ON (ccu.constraint_name = tc.constraint_name AND
                    ccu.constraint_schema = tc.constraint_schema)
            JOIN information_schema.referential_constraints AS rc
                ON (rc.constraint_name = tc.constraint_name AND
                    rc.constraint_schema = tc.constraint_schema)
            WHERE
                tc.constraint_type = 'FOREIGN KEY' AND
                tc.table_name = 'people' AND
                tc.table_schema = COALESCE(NULL, current_schema());

-- [7] catalogue | simple | sent 1x | by: sequence_exists
-- result: count bigint
SELECT COUNT(*) FROM pg_class, pg_namespace
            WHERE relkind='S'
                AND pg_class.relnamespace = pg_namespace.oid
                AND relname='a'
                AND nspname=COALESCE(NULL, current_schema());

-- [8] catalogue | simple | sent 1x | by: pwiz introspect
-- result: oid oid, typname name, format_type text
select oid, typname, format_type(oid, NULL) from pg_type;

-- [9] catalogue | simple | sent 2x | by: pwiz introspect
-- result: attname name, atttypid oid
SELECT a.attname, a.atttypid FROM pg_catalog.pg_attribute AS a INNER JOIN pg_catalog.pg_class AS t ON a.attrelid = t.oid INNER JOIN pg_catalog.pg_namespace AS n ON t.relnamespace = n.oid WHERE t.relname = 'orders' AND n.nspname = COALESCE(NULL, current_schema()) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
