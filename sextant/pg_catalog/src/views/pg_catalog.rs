//! The views of `pg_catalog`.

/// Name and query of each view.
pub(super) const VIEWS: [(&str, &str); 15] = [
    (
        "pg_roles",
        "SELECT oid, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolconnlimit,
            '********'::text AS rolpassword, rolvaliduntil, rolbypassrls FROM pg_authid",
    ),
    (
        "pg_user",
        "SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper,
            rolreplication AS userepl, rolbypassrls AS usebypassrls, '********'::text AS passwd, rolvaliduntil AS valuntil
            FROM pg_authid WHERE rolcanlogin",
    ),
    (
        "pg_shadow",
        "SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper,
            rolreplication AS userepl, rolbypassrls AS usebypassrls, rolvaliduntil AS valuntil
            FROM pg_authid WHERE rolcanlogin",
    ),
    (
        "pg_tables",
        "SELECT n.nspname AS schemaname, c.relname AS tablename, pg_get_userbyid(c.relowner) AS tableowner,
            c.relhasindex AS hasindexes, c.relhasrules AS hasrules, c.relhastriggers AS hastriggers,
            c.relrowsecurity AS rowsecurity
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r'",
    ),
    (
        "pg_views",
        "SELECT n.nspname AS schemaname, c.relname AS viewname, pg_get_userbyid(c.relowner) AS viewowner,
            pg_get_viewdef(c.oid) AS definition
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v'",
    ),
    (
        "pg_indexes",
        "SELECT n.nspname AS schemaname, t.relname AS tablename, i.relname AS indexname, pg_get_indexdef(i.oid) AS indexdef
            FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
            JOIN pg_namespace n ON n.oid = t.relnamespace",
    ),
    (
        "pg_stat_user_tables",
        "SELECT relid, schemaname, relname, n_live_tup FROM pg_stat_all_tables",
    ),
    (
        "pg_stat_xact_all_tables",
        "SELECT relid, schemaname, relname FROM pg_stat_all_tables",
    ),
    (
        "pg_stat_xact_user_tables",
        "SELECT relid, schemaname, relname FROM pg_stat_all_tables",
    ),
    (
        "pg_stat_user_indexes",
        "SELECT relid, indexrelid, schemaname, relname, indexrelname FROM pg_stat_all_indexes",
    ),
    (
        "pg_statio_all_tables",
        "SELECT relid, schemaname, relname FROM pg_stat_all_tables",
    ),
    (
        "pg_statio_user_tables",
        "SELECT relid, schemaname, relname FROM pg_stat_all_tables",
    ),
    (
        "pg_statio_all_indexes",
        "SELECT relid, indexrelid, schemaname, relname, indexrelname FROM pg_stat_all_indexes",
    ),
    (
        "pg_statio_user_indexes",
        "SELECT relid, indexrelid, schemaname, relname, indexrelname FROM pg_stat_all_indexes",
    ),
    (
        "pg_stat_database",
        "SELECT oid AS datid, datname FROM pg_database",
    ),
];
