//! The flags of each role. One struct contains the settings of all roles; each role shows and
//! accepts only those that it has.

use clap::Arg;
use clap::builder::Resettable;
use proto::model::node::Role;
use proto::{Error, ErrorCode, Result};

use super::limits::default_of;

/// The value of a flag that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preset {
    /// No value: the setting is required, or its absence has no effect.
    Nothing,
    /// A value, or a description of the value in words.
    Value(&'static str),
}

/// Returns the default of a role's flag; `None` if the role does not have the flag.
fn preset(flag: &str, role: Role) -> Option<Preset> {
    use Preset::{Nothing, Value};
    match (flag, role) {
        ("config" | "id" | "coordinators" | "zone", _) => Some(Nothing),
        ("tls-cert" | "tls-key" | "tls-ca" | "insecure", _) => Some(Nothing),
        ("bind", Role::Router) => Some(Value("the address in --grpc")),
        ("advertise", Role::Router) => Some(Value("the address in --grpc")),
        ("bind" | "advertise", _) => Some(Value("the address in --peer-listen")),
        ("data", Role::Router) => Some(Value("none")),
        ("peer-listen" | "data", Role::Coordinator | Role::Projector | Role::Indexer) => {
            Some(Nothing)
        }
        ("force-new-cluster" | "skip-epochs", Role::Coordinator) => Some(Nothing),
        ("lost-after-s", Role::Coordinator) => Some(Value("3600")),
        ("change-log-mb", Role::Projector) => Some(Value("1024")),
        ("transactions-mb", Role::Projector) => Some(Value("256")),
        ("files-dir", Role::Projector) => Some(Value("none")),
        ("memory-mb", Role::Indexer) => Some(Value("512")),
        ("scans-max", Role::Indexer) => Some(Value("64")),
        ("scan-memory-total-mb", Role::Indexer) => Some(Value("an eighth of --memory-mb")),
        ("scan-memory-each-mb", Role::Indexer) => Some(Value("--scan-memory-total-mb")),
        ("scans-max" | "scan-memory-total-mb", Role::Router) => Some(Value("512")),
        ("scan-memory-each-mb", Role::Router) => Some(Value("a quarter of --scan-memory-total-mb")),
        ("hedge-after-ms", Role::Router) => {
            Some(Value("three times the usual time, and 10 at least"))
        }
        ("sql", Role::Router) => Some(Value("127.0.0.1:7432")),
        ("grpc", Role::Router) => Some(Value("127.0.0.1:7400")),
        ("http", Role::Router) => Some(Value("127.0.0.1:7480")),
        ("http", _) => Some(Value("no such port")),
        ("auth", Role::Router) => Some(Value("scram; trust with --insecure")),
        ("audit-dir", Role::Router) => {
            Some(Value("the data directory; without both there is no audit"))
        }
        ("audit-dir", Role::Coordinator) => Some(Value("the data directory")),
        ("audit-mb", Role::Router | Role::Coordinator) => Some(Value("64")),
        ("grpc-connections-max", Role::Router) => Some(Value("512")),
        ("http-connections-max", _) => Some(Value("128")),
        ("peer-connections-max", Role::Coordinator | Role::Projector | Role::Indexer) => {
            Some(Value("4096"))
        }
        (_, Role::Router) => default_of(flag).map(Value),
        _ => None,
    }
}

/// Returns the help text of a flag for one role, if it differs from the help text for other
/// roles.
fn help_of_role(flag: &str, role: Role) -> Option<&'static str> {
    match (flag, role) {
        ("data", Role::Router) => Some(
            "Data directory for the catalog: with it scans go on after a restart of the router also while no coordinator answers",
        ),
        ("audit-dir", Role::Coordinator) => Some(
            "Directory of the audit: changes of the nodes and of the places of data, as JSON lines. Each process needs its own",
        ),
        ("coordinators", Role::Coordinator) => Some(
            "Members to begin with. A process with an empty directory founds a new cluster with them if it is one of them, and \
             otherwise waits for ADD COORDINATOR; a directory with a log has its own members",
        ),
        _ => None,
    }
}

/// Adds the default of a flag to its help if the role has the flag. Hides the flag otherwise, and
/// ignores its environment variable.
pub fn for_role(argument: Arg, role: Role) -> Arg {
    let flag = argument.get_long().unwrap_or_default().to_owned();
    match preset(&flag, role) {
        None => argument.hide(true).env(Resettable::Reset),
        Some(Preset::Nothing) => match help_of_role(&flag, role) {
            None => argument.hide_env_values(true),
            Some(meaning) => argument.help(meaning).hide_env_values(true),
        },
        Some(Preset::Value(value)) => {
            let common = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let meaning = help_of_role(&flag, role).map_or(common, ToOwned::to_owned);
            argument.help(format!("{meaning} [default: {value}]")).hide_env_values(true)
        }
    }
}

/// Returns an error if a setting of another role is given. `given` contains each flag, with true
/// if it was given.
pub fn refuse_foreign(role: Role, given: &[(&str, bool)]) -> Result<()> {
    let foreign = given.iter().find(|(flag, given)| *given && preset(flag, role).is_none());
    let Some((flag, _)) = foreign else { return Ok(()) };
    let what = format!("a {} has no setting {} (--{flag})", role.name(), flag.replace('-', "_"));
    Err(Error::new(ErrorCode::InvalidParameter, what)
        .with_hint(format!("sextant {} --help lists its settings", role.name())))
}
