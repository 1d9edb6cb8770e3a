//! The flags, environment variables and settings file of a role that runs as a separate process. A
//! flag overrides its environment variable, and both override the file.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::{Error, ErrorCode, Result};

use super::limits::{LimitArgs, MIB_MAX};
use super::renamed_settings::{OldName, refuse_old_names};
use super::role_flags::refuse_foreign;
use super::security::{GivenSettings, security};
use super::settings_file;
use crate::limited::ConnectionsMax;
use crate::roles::{
    Auth, LoginSettings, RecoveryFlags, RoleSettings, ScanSettings, Shutdown, run_role,
};

/// The settings of a role: flags, or keys of a file ([`settings_file`]).
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// TOML file with these settings
    #[arg(long, env = "SEXTANT_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Node number of this process, unique in the cluster
    #[arg(long, env = "SEXTANT_ID", value_name = "N")]
    id: Option<u64>,
    /// Address for calls of other processes, by which they know this one
    #[arg(long, env = "SEXTANT_PEER_LISTEN", value_name = "HOST:PORT")]
    peer_listen: Option<String>,
    /// Address to listen on
    #[arg(long, env = "SEXTANT_BIND", value_name = "HOST:PORT")]
    bind: Option<String>,
    /// Address by which other processes know this one
    #[arg(long, env = "SEXTANT_ADVERTISE", value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Data directory
    #[arg(long, env = "SEXTANT_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Zone of this process; replicas of a slice are placed in different zones
    #[arg(long, env = "SEXTANT_ZONE")]
    zone: Option<String>,
    /// Certificate of this process, and intermediate ones after it. New files are taken over while it runs
    #[arg(long, env = "SEXTANT_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, readable by its owner only
    #[arg(long, env = "SEXTANT_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Certificates of the cluster's authority
    #[arg(long, env = "SEXTANT_TLS_CA", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Go without certificates and without checks of other processes. All addresses have to be
    /// loopback addresses
    #[arg(long, env = "SEXTANT_INSECURE", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    insecure: Option<bool>,
    /// Members of the coordinator. One that answers is enough: it tells the present ones
    #[arg(long, env = "SEXTANT_COORDINATORS", value_name = "N=HOST:PORT", value_delimiter = ',')]
    coordinators: Vec<String>,
    /// Begin a new cluster, because the log of this one is lost for good. It refuses the data of all other processes
    #[arg(long)]
    force_new_cluster: bool,
    /// Continue above all known epochs and numbers, because the data is restored from an older
    /// copy. It rebuilds all indexes
    #[arg(long)]
    skip_epochs: bool,
    /// Silence of an indexer, in seconds, after which others rebuild the slices that it alone has; 0 stands for never
    #[arg(long, env = "SEXTANT_LOST_AFTER_S", value_name = "S")]
    lost_after_s: Option<u64>,
    /// Memory limit of the slices, in MiB
    #[arg(long, env = "SEXTANT_MEMORY_MB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(16..=MIB_MAX))]
    memory_mb: Option<u64>,
    /// Concurrent scans (on an indexer: shard scans); further ones wait
    #[arg(long, env = "SEXTANT_SCANS_MAX", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    scans_max: Option<u64>,
    /// Memory limit of all scans together, in MiB
    #[arg(long, env = "SEXTANT_SCAN_MEMORY_TOTAL_MB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    scan_memory_total_mb: Option<u64>,
    /// Memory limit of one scan, in MiB
    #[arg(long, env = "SEXTANT_SCAN_MEMORY_EACH_MB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    scan_memory_each_mb: Option<u64>,
    /// Time in milliseconds after which another copy is queried in addition to a node that does not
    /// answer; 0 stands for never
    #[arg(long, env = "SEXTANT_HEDGE_AFTER_MS", value_name = "MS")]
    hedge_after_ms: Option<u32>,
    /// Size limit of each bucket's change log, in MiB. Copies that were away for longer are resynced
    #[arg(long, env = "SEXTANT_CHANGE_LOG_MB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    change_log_mb: Option<u64>,
    /// Memory limit of the changes of all open transactions, in MiB. One transaction may take three quarters of it
    #[arg(long, env = "SEXTANT_TRANSACTIONS_MB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=TRANSACTIONS_MB_MAX))]
    transactions_mb: Option<u64>,
    /// Directory below which ALTER BUCKET … LOAD VERSION finds its files
    #[arg(long, env = "SEXTANT_FILES_DIR", value_name = "DIR")]
    files_dir: Option<PathBuf>,
    /// Address of the SQL port
    #[arg(long, env = "SEXTANT_SQL_LISTEN", value_name = "HOST:PORT")]
    sql: Option<String>,
    /// Address of the gRPC port
    #[arg(long, env = "SEXTANT_GRPC_LISTEN", value_name = "HOST:PORT")]
    grpc: Option<String>,
    /// Address of the HTTP port, for /status, /metrics and /healthz
    #[arg(long, env = "SEXTANT_HTTP_LISTEN", value_name = "HOST:PORT")]
    http: Option<String>,
    /// Limit of connections of gRPC clients. The open files of the process limit them too
    #[arg(long, env = "SEXTANT_GRPC_CONNECTIONS_MAX", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    grpc_connections_max: Option<u64>,
    /// Limit of connections of HTTP clients. The open files of the process limit them too
    #[arg(long, env = "SEXTANT_HTTP_CONNECTIONS_MAX", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    http_connections_max: Option<u64>,
    /// Limit of connections of other processes. The open files of the process limit them too
    #[arg(long, env = "SEXTANT_PEER_CONNECTIONS_MAX", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    peer_connections_max: Option<u64>,
    /// Clients that are let in: any of this machine (trust), or users (scram), with a password, a token or a certificate
    #[arg(long, env = "SEXTANT_AUTH", value_name = "trust|scram", hide_possible_values = true)]
    auth: Option<Auth>,
    /// Directory of the audit: changes of definitions, users, placement and nodes, and failed log-ins, as JSON lines. Each process needs its own
    #[arg(long, env = "SEXTANT_AUDIT_DIR", value_name = "DIR")]
    audit_dir: Option<PathBuf>,
    /// Size limit of the audit, in MiB; the older lines go
    #[arg(long, env = "SEXTANT_AUDIT_MB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    audit_mb: Option<u64>,
    #[command(flatten)]
    limits: LimitArgs,
    #[arg(long, hide = true)]
    listen: Option<OldName>,
    #[arg(long, hide = true)]
    scans_memory_mb: Option<OldName>,
    #[arg(long, hide = true)]
    scan_memory_mb: Option<OldName>,
    #[arg(long, hide = true)]
    log_mb: Option<OldName>,
}

/// The maximum of the memory for open transactions, in MiB. An indexer logs an epoch, which
/// contains whole commits, as one record of at most 512 MiB.
const TRANSACTIONS_MB_MAX: u64 = 512;

/// Returns the error for an invalid setting.
fn setting_error(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

/// Reads the settings from a file.
fn read_file(env: &Env, path: &Path) -> Result<Args> {
    let here =
        |error: std::io::Error| Error::from(error).context(format!("reading {}", path.display()));
    let file = env.fs.open(path, proto::env::OpenMode::Read).map_err(here)?;
    let mut bytes = vec![0; file.len().map_err(here)? as usize];
    file.read_exact_at(&mut bytes, 0).map_err(here)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| setting_error(format!("{}: not UTF-8", path.display())))?;
    settings_file::read(&text).map_err(|error| error.context(path.display().to_string()))
}

/// Parses the text of a settings file and returns the settings of a role, without any flags.
#[cfg(any(test, feature = "testing"))]
pub(super) fn settings_of_text(env: &Env, role: Role, text: &str) -> Result<RoleSettings> {
    settings_file::read::<Args>(text)?.settings(env, role)
}

impl Args {
    /// Returns an error if a setting has an old name.
    fn refuse_old_names(&self, role: Role) -> Result<()> {
        refuse_old_names(&[
            (self.listen, "listen", if role == Role::Router { "grpc" } else { "peer_listen" }),
            (self.scans_memory_mb, "scans_memory_mb", "scan_memory_total_mb"),
            (self.scan_memory_mb, "scan_memory_mb", "scan_memory_each_mb"),
            (self.log_mb, "log_mb", "change_log_mb"),
        ])
    }

    /// Returns an error if a setting of another role is given.
    fn refuse_foreign(&self, role: Role) -> Result<()> {
        let given = [
            ("data", self.data.is_some()),
            ("force-new-cluster", self.force_new_cluster),
            ("skip-epochs", self.skip_epochs),
            ("lost-after-s", self.lost_after_s.is_some()),
            ("memory-mb", self.memory_mb.is_some()),
            ("scans-max", self.scans_max.is_some()),
            ("scan-memory-total-mb", self.scan_memory_total_mb.is_some()),
            ("scan-memory-each-mb", self.scan_memory_each_mb.is_some()),
            ("hedge-after-ms", self.hedge_after_ms.is_some()),
            ("change-log-mb", self.change_log_mb.is_some()),
            ("transactions-mb", self.transactions_mb.is_some()),
            ("files-dir", self.files_dir.is_some()),
            ("sql", self.sql.is_some()),
            ("grpc", self.grpc.is_some()),
            ("http", self.http.is_some()),
            ("auth", self.auth.is_some()),
            ("audit-dir", self.audit_dir.is_some()),
            ("audit-mb", self.audit_mb.is_some()),
            ("grpc-connections-max", self.grpc_connections_max.is_some()),
            ("http-connections-max", self.http_connections_max.is_some()),
            ("peer-connections-max", self.peer_connections_max.is_some()),
        ];
        refuse_foreign(role, &given)?;
        refuse_foreign(role, &self.limits.given())
    }

    /// Returns the complete settings of a role, with the defaults.
    fn settings(self, env: &Env, role: Role) -> Result<RoleSettings> {
        let file = match &self.config {
            Some(path) => read_file(env, path)?,
            None => Args::default(),
        };
        self.refuse_old_names(role)?;
        file.refuse_old_names(role)?;
        self.refuse_foreign(role)?;
        file.refuse_foreign(role)?;
        let missing = |what: &str| {
            setting_error(format!("a {} needs {what}", role.name()))
                .with_hint("set it as a flag or in the file of --config; config/ has examples")
        };
        let id = self.id.or(file.id).ok_or_else(|| missing("a node number, --id"))?;
        let (peer_listen, grpc) = (self.peer_listen.or(file.peer_listen), self.grpc.or(file.grpc));
        let address = match role {
            Role::Router => router_address(peer_listen, grpc)?,
            _ => peer_listen.ok_or_else(|| missing("an address, --peer-listen"))?,
        };
        let bind = self.bind.or(file.bind).unwrap_or_else(|| address.clone());
        let address = advertised(role, address, self.advertise.or(file.advertise))?;
        let data = self.data.or(file.data);
        if data.is_none() && role != Role::Router {
            return Err(missing("a data directory, --data"));
        }
        let coordinators =
            if self.coordinators.is_empty() { file.coordinators } else { self.coordinators };
        let coordinators =
            coordinators.iter().map(|text| parse_member(text)).collect::<Result<Vec<_>>>()?;
        if coordinators.is_empty() {
            return Err(missing("the coordinator's members, --coordinators 1=host:port,2=…"));
        }
        let zone = self.zone.or(file.zone).unwrap_or_default();
        let given = GivenSettings {
            certificate: self.tls_cert.or(file.tls_cert),
            key: self.tls_key.or(file.tls_key),
            ca: self.tls_ca.or(file.tls_ca),
            insecure: self.insecure.or(file.insecure),
        };
        let security = security(role, given)?;
        let connections = ConnectionsMax {
            grpc: self.grpc_connections_max.or(file.grpc_connections_max).map(count),
            http: self.http_connections_max.or(file.http_connections_max).map(count),
            peers: self.peer_connections_max.or(file.peer_connections_max).map(count),
        };
        Ok(RoleSettings {
            node: NodeInfo { id: NodeId(id), role, address, zone },
            bind,
            data: data.unwrap_or_default(),
            memory_bytes: self.memory_mb.or(file.memory_mb).map(|bound| mib(bound) as u64),
            scans: ScanSettings {
                count_max: self.scans_max.or(file.scans_max).map(count),
                memory_bytes: self.scan_memory_total_mb.or(file.scan_memory_total_mb).map(mib),
                each_memory_bytes: self.scan_memory_each_mb.or(file.scan_memory_each_mb).map(mib),
                hedge_after_ms: self.hedge_after_ms.or(file.hedge_after_ms),
            },
            log_bytes_max: self.change_log_mb.or(file.change_log_mb).map(|bound| mib(bound) as u64),
            transactions_bytes_max: self.transactions_mb.or(file.transactions_mb).map(mib),
            files_dir: self.files_dir.or(file.files_dir),
            recovery: RecoveryFlags {
                force_new_cluster: self.force_new_cluster,
                skip_epochs: self.skip_epochs,
                lost_after_s: self.lost_after_s.or(file.lost_after_s),
            },
            coordinators,
            security,
            sql: self.sql.or(file.sql).unwrap_or_else(|| "127.0.0.1:7432".into()),
            http: self.http.or(file.http),
            connections,
            doors: LoginSettings {
                auth: self.auth.or(file.auth),
                limits: self.limits.limits(&file.limits),
                audit_dir: self.audit_dir.or(file.audit_dir),
                audit_mb: self.audit_mb.or(file.audit_mb),
            },
        })
    }
}

/// Returns the address by which other processes know this one. Returns an error for an address
/// that stands for all interfaces, since no process can call it.
fn advertised(role: Role, listen: String, advertise: Option<String>) -> Result<String> {
    let address = advertise.unwrap_or(listen);
    let host = address.rsplit_once(':').map_or(&*address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_everywhere = host.is_empty() || host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
    // No process calls a router.
    if !is_everywhere || role == Role::Router {
        return Ok(address);
    }
    Err(setting_error(format!("other processes cannot call a {} at {address}", role.name()))
        .with_hint("give the address that they can call with --advertise HOST:PORT"))
}

/// Returns the address of a router's gRPC port.
fn router_address(peer_listen: Option<String>, grpc: Option<String>) -> Result<String> {
    match peer_listen {
        None => Ok(grpc.unwrap_or_else(|| "127.0.0.1:7400".into())),
        Some(_) => Err(setting_error("a router serves users only: it has no --peer-listen")
            .with_hint("--sql, --grpc and --http set the addresses of a router's ports")),
    }
}

/// Converts MiB (at most [`MIB_MAX`]) to bytes.
fn mib(mib: u64) -> usize {
    (mib << 20) as usize
}

/// Converts a number of a setting; a number that is too large becomes the maximum.
fn count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Parses the number and the address of a coordinator.
pub(super) fn parse_member(text: &str) -> Result<(NodeId, String)> {
    let wrong = || setting_error(format!("coordinator member {text:?} is not N=HOST:PORT"));
    let (id, address) = text.trim().split_once('=').ok_or_else(wrong)?;
    Ok((NodeId(id.parse().map_err(|_| wrong())?), address.to_owned()))
}

/// Runs a role until SIGTERM or control-C.
pub async fn run(role: Role, args: Args, shutdown: Shutdown) -> Result<()> {
    let env = Env::real();
    let settings = args.settings(&env, role)?;
    run_role(settings, env, shutdown).await
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn refused(args: &Args) -> String {
        args.refuse_old_names(Role::Indexer).expect_err("an old name").message
    }

    fn parsed(flags: &[&str]) -> Args {
        Command::try_parse_from(["role"].iter().chain(flags)).expect("known flags").args
    }

    #[test]
    fn listen_addresses_by_role() {
        let old = parsed(&["--listen=h:1"]);
        for (role, new) in [
            (Role::Coordinator, "--peer-listen"),
            (Role::Projector, "--peer-listen"),
            (Role::Indexer, "--peer-listen"),
            (Role::Router, "--grpc"),
        ] {
            let refused = old.refuse_old_names(role).expect_err("an old name").message;
            assert!(refused.contains(new), "{role:?}: {refused}");
        }
        let settings = |role, flag| {
            let data = Some("--data=d").filter(|_| role != Role::Router);
            let flags =
                ["--id=1", "--insecure", "--coordinators=1=h:1", flag].into_iter().chain(data);
            parsed(&flags.collect::<Vec<_>>()).settings(&Env::real(), role)
        };
        let indexer = settings(Role::Indexer, "--peer-listen=h:2").expect("complete");
        assert_eq!((&*indexer.node.address, &*indexer.bind), ("h:2", "h:2"));
        let indexer = settings(Role::Indexer, "--zone=z").expect_err("no address");
        assert!(indexer.message.contains("--peer-listen"), "{indexer}");
        let indexer = settings(Role::Indexer, "--grpc=h:2").expect_err("not of an indexer");
        assert!(indexer.message.contains("--grpc"), "{indexer}");
        let router = settings(Role::Router, "--grpc=h:3").expect("complete");
        assert_eq!((&*router.node.address, &*router.bind), ("h:3", "h:3"));
        let router = settings(Role::Router, "--peer-listen=h:3").expect_err("not of a router");
        assert!(router.message.contains("--peer-listen"), "{router}");
    }

    #[test]
    fn an_address_of_all_interfaces_is_not_advertised() {
        let settings = |flags: &[&str]| {
            let all = ["--id=1", "--insecure", "--data=d", "--coordinators=1=h:1"];
            parsed(&[&all, flags].concat()).settings(&Env::real(), Role::Indexer)
        };
        for everywhere in ["0.0.0.0:7401", "[::]:7401", ":7401"] {
            let listen = format!("--peer-listen={everywhere}");
            let refused = settings(&[&listen]).expect_err("nobody can call it");
            assert!(refused.hint.is_some_and(|hint| hint.contains("--advertise")), "{everywhere}");
            let known = settings(&[&listen, "--advertise=host:7401"]).expect("complete");
            assert_eq!((&*known.node.address, &*known.bind), ("host:7401", everywhere));
        }
        assert!(settings(&["--peer-listen=10.0.0.1:7401"]).is_ok());
    }

    #[test]
    fn settings_with_a_new_name_are_refused_under_the_old_one() {
        for (old, new) in [
            ("scans_memory_mb", "scan_memory_total_mb"),
            ("scan_memory_mb", "scan_memory_each_mb"),
            ("log_mb", "change_log_mb"),
        ] {
            let file: Args = settings_file::read(&format!("{old} = 1")).expect("known");
            assert!(refused(&file).contains(new), "{old} in a file");
            let flag = format!("--{}=1", old.replace('_', "-"));
            let Command { args } = Command::try_parse_from(["role", &flag]).expect("known");
            assert!(refused(&args).contains(&new.replace('_', "-")), "{flag}");
            let file: Args = settings_file::read(&format!("{new} = 1")).expect("known");
            file.refuse_old_names(Role::Indexer).expect("the new name");
            let flag = format!("--{}=1", new.replace('_', "-"));
            Command::try_parse_from(["role", &flag]).expect("the new flag");
        }
    }
}
