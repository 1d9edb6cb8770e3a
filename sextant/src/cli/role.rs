//! Each role as a process of its own. Settings come from a file, from flags, or from both; a flag wins.

use std::path::{Path, PathBuf};

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::{Error, ErrorCode, Result};
use serde::Deserialize;

use crate::roles::{RoleSettings, ScanSettings, run_role};

/// The settings of a role, as flags or in a TOML file under the same names (with `_` for `-`).
#[derive(Debug, Default, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct Args {
    /// A TOML file with these settings
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    config: Option<PathBuf>,
    /// This process's number, unique in the cluster
    #[arg(long, value_name = "N")]
    id: Option<u64>,
    /// Where other processes reach this one
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Where this process listens, if others reach it at another address than its own
    #[arg(long, value_name = "HOST:PORT")]
    bind: Option<String>,
    /// Where the data is kept (not for a router)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Replicas avoid sharing a zone
    #[arg(long)]
    zone: Option<String>,
    /// The members of the coordinator, all of them
    #[arg(long, value_name = "N=HOST:PORT", value_delimiter = ',')]
    coordinators: Vec<String>,
    /// What an indexer's slices may take of memory, in MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(16..))]
    memory_mb: Option<u64>,
    /// Scans that a router, or shard scans that an indexer, runs at once; one more waits
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    scans_max: Option<u64>,
    /// What all scans of a router or an indexer together may hold of rows and blocks, in MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    scans_memory_mb: Option<u64>,
    /// What one scan may hold of them, in MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    scan_memory_mb: Option<u64>,
    /// What a projector keeps of each bucket's change log, in MiB; copies that were away for longer are resynced
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    log_mb: Option<u64>,
    /// A router's address for SQL
    #[arg(long, value_name = "HOST:PORT")]
    sql: Option<String>,
    /// A router's address for HTTP
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
}

/// More memory or disk than any machine has.
pub const MIB_MAX: u64 = 1 << 30;

fn bad(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

fn read_file(env: &Env, path: &Path) -> Result<Args> {
    let here =
        |error: std::io::Error| Error::from(error).context(format!("reading {}", path.display()));
    let file = env.fs.open(path, proto::env::OpenMode::Read).map_err(here)?;
    let mut bytes = vec![0; file.len().map_err(here)? as usize];
    file.read_exact_at(&mut bytes, 0).map_err(here)?;
    let text =
        String::from_utf8(bytes).map_err(|_| bad(format!("{}: not UTF-8", path.display())))?;
    toml::from_str(&text).map_err(|error| bad(format!("{}: {error}", path.display())))
}

impl Args {
    fn settings(self, env: &Env, role: Role) -> Result<RoleSettings> {
        let file = match &self.config {
            Some(path) => read_file(env, path)?,
            None => Args::default(),
        };
        let missing = |what: &str| {
            bad(format!("a {} needs {what}", role.name())).with_hint(
                "give it as a flag, or in the file that --config names; see config/ for examples",
            )
        };
        let id = self.id.or(file.id).ok_or_else(|| missing("a number, --id"))?;
        let address = self.listen.or(file.listen).ok_or_else(|| missing("an address, --listen"))?;
        let bind = self.bind.or(file.bind).unwrap_or_else(|| address.clone());
        let data = self.data.or(file.data);
        if data.is_none() && role != Role::Router {
            return Err(missing("a data directory, --data"));
        }
        let coordinators =
            if self.coordinators.is_empty() { file.coordinators } else { self.coordinators };
        let coordinators =
            coordinators.iter().map(|text| member(text)).collect::<Result<Vec<_>>>()?;
        if coordinators.is_empty() {
            return Err(missing("the coordinator's members, --coordinators 1=host:port,2=…"));
        }
        let zone = self.zone.or(file.zone).unwrap_or_default();
        Ok(RoleSettings {
            node: NodeInfo { id: NodeId(id), role, address, zone },
            bind,
            data: data.unwrap_or_default(),
            memory_bytes: self.memory_mb.or(file.memory_mb).map(|mib| mib.max(16) << 20),
            scans: ScanSettings {
                count_max: self.scans_max.or(file.scans_max).map(|count| count.max(1) as usize),
                memory_bytes: self.scans_memory_mb.or(file.scans_memory_mb).map(mib),
                each_memory_bytes: self.scan_memory_mb.or(file.scan_memory_mb).map(mib),
            },
            log_bytes_max: self.log_mb.or(file.log_mb).map(|bound| mib(bound) as u64),
            coordinators,
            sql: self.sql.or(file.sql).unwrap_or_else(|| "127.0.0.1:7432".into()),
            http: self.http.or(file.http).unwrap_or_else(|| "127.0.0.1:7480".into()),
        })
    }
}

/// MiB as bytes; a file may say what a flag may not.
fn mib(mib: u64) -> usize {
    (mib.clamp(1, MIB_MAX) << 20) as usize
}

fn member(text: &str) -> Result<(NodeId, String)> {
    let wrong = || bad(format!("coordinator member {text:?} is not N=HOST:PORT"));
    let (id, address) = text.trim().split_once('=').ok_or_else(wrong)?;
    Ok((NodeId(id.parse().map_err(|_| wrong())?), address.to_owned()))
}

/// Runs a role until SIGTERM or control-C.
pub async fn run(role: Role, args: Args) -> Result<()> {
    let env = Env::real();
    let settings = args.settings(&env, role)?;
    run_role(settings, env).await
}
