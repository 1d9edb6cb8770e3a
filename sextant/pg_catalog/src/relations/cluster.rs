//! The relations about the cluster and its sessions: the database, roles, settings, activity.

use proto::value::Value;

use super::Rows;
use super::build::{int, rows, text, truth};
use crate::error::Result;
use crate::facts::{Activity, DATABASE, Facts, OWNER, OWNER_NAME, Role, SessionFacts};

/// The encoding UTF8.
const UTF8: i64 = 6;
/// The tablespace `pg_default`.
const PG_DEFAULT: i64 = 1663;

pub(super) fn pg_database(facts: &Facts) -> Result<Rows> {
    let names = [
        "oid",
        "datname",
        "datdba",
        "encoding",
        "datlocprovider",
        "datistemplate",
        "datallowconn",
        "datconnlimit",
        "dattablespace",
        "datcollate",
        "datctype",
    ];
    let row = [
        int(DATABASE),
        text(&facts.database),
        int(OWNER),
        int(UTF8),
        text("c"),
        truth(false),
        truth(true),
        int(-1),
        int(PG_DEFAULT),
        text("C"),
        text("C"),
    ];
    rows("pg_database", names, [row])
}

pub(super) fn pg_tablespace() -> Result<Rows> {
    let all = [(PG_DEFAULT, "pg_default"), (1664, "pg_global")];
    rows(
        "pg_tablespace",
        ["oid", "spcname", "spcowner"],
        all.map(|(oid, name)| [int(oid), text(name), int(OWNER)]),
    )
}

/// `pg_authid`: the owner, who cannot log in, and the users. No password is shown.
pub(super) fn pg_authid(facts: &Facts) -> Result<Rows> {
    let names = [
        "oid",
        "rolname",
        "rolsuper",
        "rolinherit",
        "rolcreaterole",
        "rolcreatedb",
        "rolcanlogin",
        "rolreplication",
        "rolbypassrls",
        "rolconnlimit",
        "rolvaliduntil",
    ];
    let row = |oid: u32, name: &str, admin: bool, can_log_in: bool, until: Value| {
        [
            int(oid),
            text(name),
            truth(admin),
            truth(true),
            truth(admin),
            truth(false),
            truth(can_log_in),
            truth(false),
            truth(admin),
            int(-1),
            until,
        ]
    };
    let owner = row(OWNER, OWNER_NAME, true, false, Value::Null);
    let until = |role: &Role| role.valid_until_us.map_or(Value::Null, Value::int);
    let users = facts
        .roles
        .iter()
        .filter_map(|role| Some(row(role.oid()?, &role.name, role.is_admin, true, until(role))));
    rows("pg_authid", names, std::iter::once(owner).chain(users))
}

pub(super) fn pg_settings(session: &SessionFacts) -> Result<Rows> {
    let names = [
        "name",
        "setting",
        "category",
        "short_desc",
        "context",
        "vartype",
        "source",
        "boot_val",
        "reset_val",
        "pending_restart",
    ];
    let row = |setting: &crate::facts::Setting| {
        let context = if setting.can_change { "user" } else { "internal" };
        let source = if setting.value == setting.default { "default" } else { "session" };
        let kind = match setting.default.as_str() {
            "on" | "off" => "bool",
            other if other.parse::<i64>().is_ok() => "integer",
            other if other.parse::<f64>().is_ok() => "real",
            _ => "string",
        };
        [
            text(&setting.name),
            text(&setting.value),
            text("Client Connection Defaults"),
            text(""),
            text(context),
            text(kind),
            text(source),
            text(&setting.default),
            text(&setting.default),
            truth(false),
        ]
    };
    rows("pg_settings", names, session.settings.iter().map(row))
}

pub(super) fn pg_stat_activity(facts: &Facts, of: &SessionFacts) -> Result<Rows> {
    let names = [
        "datid",
        "datname",
        "pid",
        "usesysid",
        "usename",
        "application_name",
        "client_addr",
        "client_port",
        "state",
        "query",
        "backend_type",
    ];
    let row = |session: &Activity| {
        let (address, port) = match &session.client {
            Some((address, port)) => (text(address), int(*port)),
            None => (Value::Null, int(-1)),
        };
        [
            int(DATABASE),
            text(&facts.database),
            int(session.process),
            int(facts.role(&session.user)),
            text(&session.user),
            text(&session.application),
            address,
            port,
            text(&session.state),
            text(&session.statement),
            text("client backend"),
        ]
    };
    rows("pg_stat_activity", names, of.sessions.iter().map(row))
}

/// `pg_stat_all_tables`: the number of documents, where it is known.
pub(super) fn pg_stat_all_tables(facts: &Facts) -> Result<Rows> {
    let names = ["relid", "schemaname", "relname", "n_live_tup"];
    let row = |table: &crate::facts::Table| {
        let rows = table
            .rows
            .map_or(Value::Null, |rows| Value::int(i64::try_from(rows).unwrap_or(i64::MAX)));
        Some([int(table.oids()?.table), text("public"), text(&table.name), rows])
    };
    rows("pg_stat_all_tables", names, facts.tables.iter().filter_map(row))
}

/// `pg_stat_all_indexes`: the indexes, whose use is not counted.
pub(super) fn pg_stat_all_indexes(facts: &Facts) -> Result<Rows> {
    let names = ["relid", "indexrelid", "schemaname", "relname", "indexrelname"];
    let row = |index: &crate::facts::Index| {
        let table = facts.tables.iter().find(|table| table.number == index.table)?;
        let (table_oid, index_oid) = (table.oids()?.table, index.oids()?.index);
        Some([int(table_oid), int(index_oid), text("public"), text(&table.name), text(&index.name)])
    };
    rows("pg_stat_all_indexes", names, facts.indexes.iter().filter_map(row))
}
