//! The views of `information_schema`.

/// Name and query of each view.
pub(super) const VIEWS: [(&str, &str); 17] = [
    ("information_schema_catalog_name", "SELECT current_database() AS catalog_name"),
    (
        "schemata",
        "SELECT current_database() AS catalog_name, nspname AS schema_name, pg_get_userbyid(nspowner) AS schema_owner
            FROM pg_namespace",
    ),
    (
        "tables",
        "SELECT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            CASE c.relkind WHEN 'r' THEN 'BASE TABLE' ELSE 'VIEW' END AS table_type,
            CASE WHEN c.relkind = 'r' AND n.nspname = 'public' THEN 'YES' ELSE 'NO' END AS is_insertable_into,
            'NO' AS is_typed
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v')",
    ),
    (
        "views",
        "SELECT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            pg_get_viewdef(c.oid) AS view_definition, 'NONE' AS check_option, 'NO' AS is_updatable,
            'NO' AS is_insertable_into, 'NO' AS is_trigger_updatable, 'NO' AS is_trigger_deletable,
            'NO' AS is_trigger_insertable_into
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v'",
    ),
    (
        "columns",
        "SELECT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            a.attname AS column_name, a.attnum AS ordinal_position,
            CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable,
            CASE WHEN b.typelem <> 0 AND b.typlen = -1 AND b.typcategory = 'A' THEN 'ARRAY' ELSE format_type(b.oid, NULL) END AS data_type,
            information_schema._pg_char_max_length(b.oid, a.atttypmod) AS character_maximum_length,
            information_schema._pg_char_octet_length(b.oid, a.atttypmod) AS character_octet_length,
            information_schema._pg_numeric_precision(b.oid, a.atttypmod) AS numeric_precision,
            information_schema._pg_numeric_precision_radix(b.oid, a.atttypmod) AS numeric_precision_radix,
            information_schema._pg_numeric_scale(b.oid, a.atttypmod) AS numeric_scale,
            information_schema._pg_datetime_precision(b.oid, a.atttypmod) AS datetime_precision,
            CASE WHEN a.attcollation = 950 THEN current_database() END AS collation_catalog,
            CASE WHEN a.attcollation = 950 THEN 'pg_catalog' END AS collation_schema,
            CASE WHEN a.attcollation = 950 THEN 'C' END AS collation_name,
            CASE WHEN t.typtype = 'd' THEN current_database() END AS domain_catalog,
            CASE WHEN t.typtype = 'd' THEN tn.nspname END AS domain_schema,
            CASE WHEN t.typtype = 'd' THEN t.typname END AS domain_name,
            current_database() AS udt_catalog, bn.nspname AS udt_schema, b.typname AS udt_name,
            a.attnum::text AS dtd_identifier, 'NO' AS is_self_referencing, 'NO' AS is_identity, 'NO' AS identity_cycle,
            'NEVER' AS is_generated,
            CASE WHEN c.relkind = 'r' AND n.nspname = 'public' THEN 'YES' ELSE 'NO' END AS is_updatable
            FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
            JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
            JOIN pg_namespace bn ON bn.oid = b.typnamespace
            WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v')",
    ),
    (
        "table_constraints",
        "SELECT current_database() AS constraint_catalog, n.nspname AS constraint_schema, k.conname AS constraint_name,
            current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            'PRIMARY KEY' AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred, 'YES' AS enforced
            FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        UNION ALL
        SELECT current_database(), n.nspname, concat(n.oid, '_', c.oid, '_', a.attnum, '_not_null')::name,
            current_database(), n.nspname, c.relname, 'CHECK', 'NO', 'NO', 'YES'
            FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE a.attnotnull AND c.relkind = 'r'",
    ),
    (
        "check_constraints",
        "SELECT current_database() AS constraint_catalog, n.nspname AS constraint_schema,
            concat(n.oid, '_', c.oid, '_', a.attnum, '_not_null') AS constraint_name,
            a.attname || ' IS NOT NULL' AS check_clause
            FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE a.attnotnull AND c.relkind = 'r'",
    ),
    (
        "key_column_usage",
        "SELECT current_database() AS constraint_catalog, n.nspname AS constraint_schema, k.conname AS constraint_name,
            current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            a.attname AS column_name, 1 AS ordinal_position
            FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (k.conkey)",
    ),
    (
        "constraint_column_usage",
        "SELECT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            a.attname AS column_name, current_database() AS constraint_catalog, n.nspname AS constraint_schema,
            k.conname AS constraint_name
            FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (k.conkey)",
    ),
    (
        "constraint_table_usage",
        "SELECT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            current_database() AS constraint_catalog, n.nspname AS constraint_schema, k.conname AS constraint_name
            FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace",
    ),
    (
        "view_table_usage",
        "SELECT current_database() AS view_catalog, n.nspname AS view_schema, v.relname AS view_name,
            current_database() AS table_catalog, n.nspname AS table_schema, t.relname AS table_name
            FROM pg_class v JOIN pg_namespace n ON n.oid = v.relnamespace
            JOIN pg_class i ON i.relname = v.relname AND i.relnamespace = v.relnamespace AND i.relkind = 'i'
            JOIN pg_index x ON x.indexrelid = i.oid JOIN pg_class t ON t.oid = x.indrelid
            WHERE v.relkind = 'v'",
    ),
    ("enabled_roles", "SELECT current_user AS role_name"),
    (
        "table_privileges",
        "SELECT pg_get_userbyid(c.relowner) AS grantor, r.rolname AS grantee, current_database() AS table_catalog,
            n.nspname AS table_schema, c.relname AS table_name, p.privilege AS privilege_type, 'NO' AS is_grantable,
            CASE p.privilege WHEN 'SELECT' THEN 'YES' ELSE 'NO' END AS with_hierarchy
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN pg_authid r
            CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) AS p (privilege)
            WHERE c.relkind IN ('r', 'v') AND n.nspname = 'public' AND r.rolcanlogin
            AND has_table_privilege(r.oid, c.oid, p.privilege)",
    ),
    (
        "role_table_grants",
        "SELECT grantor, grantee, table_catalog, table_schema, table_name, privilege_type, is_grantable, with_hierarchy
            FROM information_schema.table_privileges WHERE grantee = current_user",
    ),
    (
        "routines",
        "SELECT current_database() AS specific_catalog, n.nspname AS specific_schema,
            concat(p.proname, '_', p.oid) AS specific_name, current_database() AS routine_catalog,
            n.nspname AS routine_schema, p.proname AS routine_name,
            CASE WHEN p.prokind = 'f' THEN 'FUNCTION' END AS routine_type, format_type(t.oid, NULL) AS data_type,
            current_database() AS type_udt_catalog, tn.nspname AS type_udt_schema, t.typname AS type_udt_name,
            '0' AS dtd_identifier, 'EXTERNAL' AS routine_body, p.proname AS external_name, 'INTERNAL' AS external_language,
            CASE p.provolatile WHEN 'i' THEN 'YES' ELSE 'NO' END AS is_deterministic, 'MODIFIES' AS sql_data_access,
            CASE WHEN p.proisstrict THEN 'YES' ELSE 'NO' END AS is_null_call, 'INVOKER' AS security_type
            FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_type t ON t.oid = p.prorettype
            JOIN pg_namespace tn ON tn.oid = t.typnamespace",
    ),
    (
        "character_sets",
        "SELECT 'UTF8' AS character_set_name, 'UCS' AS character_repertoire, 'UTF8' AS form_of_use,
            current_database() AS default_collate_catalog, 'pg_catalog' AS default_collate_schema, 'C' AS default_collate_name",
    ),
    (
        "collations",
        "SELECT current_database() AS collation_catalog, n.nspname AS collation_schema, c.collname AS collation_name,
            'NO PAD' AS pad_attribute FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace",
    ),
];
