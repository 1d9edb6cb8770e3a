//! Functions of the session and the server.

use proto::value::Value;

use super::context::{Arguments, Context};
use super::signature::Scalar;
use crate::data::FunctionRow;
use crate::error::{Error, Result};

/// PostgreSQL's encodings, by their numbers.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "version" => |context, _| Ok(Value::String(context.session.version())),
        "current_database" => |context, _| Ok(Value::from(context.session.database())),
        "current_schema" => |context, _| {
            let first = context.session.search_path().first();
            Ok(first.map_or(Value::Null, |schema| Value::from(schema.as_str())))
        },
        "current_schemas" => |context, a| {
            let implicit = if a.truth(0)? { context.names().path() } else { Vec::new() };
            let path = context.session.search_path().iter().map(String::as_str);
            let path: Vec<&str> = if implicit.is_empty() { path.collect() } else { implicit };
            Ok(Value::Array(path.into_iter().map(Value::from).collect()))
        },
        // A session has none: connection pools call this when they reset one.
        "pg_advisory_unlock_all" => |_, _| Ok(Value::from("")),
        "session_user" | "current_user" => |context, _| Ok(Value::from(context.session.user())),
        "current_setting" => current_setting,
        "set_config" => set_config,
        "pg_backend_pid" => |context, _| Ok(Value::int(context.session.process().into())),
        "getdatabaseencoding" | "pg_client_encoding" => |_, _| Ok(Value::from("UTF8")),
        "pg_encoding_to_char" => |_, a| {
            let name = usize::try_from(a.int(0)?).ok().and_then(|at| ENCODINGS.get(at));
            Ok(Value::from(name.copied().unwrap_or_default()))
        },
        "pg_char_to_encoding" => |_, a| {
            let plain = |name: &str| name.to_lowercase().replace(['-', '_'], "");
            let name = match plain(a.text(0)?).as_str() {
                "unicode" => "utf8".to_owned(),
                name => name.to_owned(),
            };
            let at = ENCODINGS.iter().position(|own| plain(own) == name);
            Ok(Value::int(at.map_or(-1, |at| at as i64)))
        },
        "inet_client_addr" => |context, _| Ok(address(context.session.client())),
        "inet_server_addr" => |context, _| Ok(address(context.session.server())),
        "inet_client_port" => |context, _| Ok(port(context.session.client())),
        "inet_server_port" => |context, _| Ok(port(context.session.server())),
        "pg_is_in_recovery" | "pg_is_wal_replay_paused" | "pg_is_other_temp_schema" => {
            |_, _| Ok(Value::Bool(false))
        }
        "pg_my_temp_schema" => |_, _| Ok(Value::int(0)),
        "pg_blocking_pids" => |_, _| Ok(Value::Array(Vec::new())),
        _ => return other(row),
    })
}

/// Functions that PostgreSQL has for what does not exist here: they are refused by name, because a
/// client that calls them counts on their effect.
fn other(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "pg_advisory_lock" | "pg_advisory_unlock" | "pg_try_advisory_lock" => {
            |_, _| Err(refused("advisory locks"))
        }
        "pg_notify" => |_, _| Err(refused("notifications")),
        "pg_cancel_backend" | "pg_terminate_backend" => {
            |_, _| Err(refused("signals to other sessions by a function"))
        }
        "pg_reload_conf" => |_, _| Err(refused("a reload of the configuration by a function")),
        "pg_sleep" => |_, _| Err(refused("waiting in a statement")),
        "txid_current" => |_, _| Err(refused("transaction numbers")),
        "age" => |_, _| Ok(Value::int(i32::MAX.into())),
        _ => return None,
    })
}

fn refused(what: &str) -> Error {
    Error::unsupported(format!("Sextant has no {what}"))
}

fn address(address: Option<(String, u16)>) -> Value {
    address.map_or(Value::Null, |(address, _)| Value::String(address))
}

fn port(address: Option<(String, u16)>) -> Value {
    address.map_or(Value::Null, |(_, port)| Value::int(port.into()))
}

fn current_setting(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let name = a.text(0)?;
    match context.session.setting(&name.to_lowercase()) {
        Some(value) => Ok(Value::String(value)),
        None if a.len() > 1 && a.truth(1)? => Ok(Value::Null),
        None => {
            Err(Error::new("42704", format!("unrecognized configuration parameter \"{name}\"")))
        }
    }
}

fn set_config(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) {
        return Err(Error::new("22004", "SET requires parameter name"));
    }
    let value = if a.is_null(1) { "" } else { a.text(1)? };
    let local = !a.is_null(2) && a.truth(2)?;
    let name = a.text(0)?.to_lowercase();
    context.session.change_setting(&name, value, local).map(Value::String)
}
