//! Sextant as one process (`sextant dev`), and as one process for each member.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tokio_postgres::{Config, SimpleQueryMessage};

use super::super::super::Outcome;
use super::super::cpu::Processes;
use super::super::documents::Document;
use super::process::{Running, free_port, run};
use super::{BY_KEY, EIGHT_SLICES, Index, ONE_SLICE, Parameter, Peer, Target};
use crate::harness::process::addresses;

const COORDINATOR: u64 = 1;
const PROJECTOR: u64 = 101;
const INDEXERS: [u64; 3] = [201, 202, 203];
const ROUTER: u64 = 301;
/// The time limit for the members to join their cluster.
const JOIN_TIME_MAX: Duration = Duration::from_secs(30);

/// A running Sextant.
pub struct Sextant {
    name: &'static str,
    version: String,
    target: Target,
    /// The processes, which are killed on drop.
    _members: Vec<Running>,
}

impl Sextant {
    /// Starts `sextant dev` with three indexers.
    pub fn dev(binary: &Path, dir: &Path) -> Outcome<Self> {
        let mut command = command(binary);
        command.arg("dev").arg("--data").arg(dir.join("dev")).args(["--nodes", "3"]);
        command.args(["--sql-port", "0", "--grpc-port", "0", "--http-port", "0"]);
        let (member, ready) = Running::start(&mut command, &dir.join("dev.log"))?;
        Self::serving("Sextant", binary, &ready, vec![member])
    }

    /// Starts a coordinator, a projector, three indexers and a router, and waits until all have joined.
    pub async fn processes(binary: &Path, dir: &Path) -> Outcome<Self> {
        let coordinators = format!("{COORDINATOR}=127.0.0.1:{}", free_port()?);
        let member = |role: &str, id: u64, listen: &str| {
            let mut command = command(binary);
            command.args([role, "--id", &id.to_string(), "--coordinators", &coordinators]);
            command.args(["--peer-listen", listen]);
            command.arg("--data").arg(dir.join(id.to_string()));
            Running::start(&mut command, &dir.join(format!("{id}.log")))
        };
        let listen = coordinators.split_once('=').map_or("", |(_, address)| address);
        let mut members = vec![member("coordinator", COORDINATOR, listen)?.0];
        members.push(member("projector", PROJECTOR, &format!("127.0.0.1:{}", free_port()?))?.0);
        for id in INDEXERS {
            members.push(member("indexer", id, &format!("127.0.0.1:{}", free_port()?))?.0);
        }
        let mut router = command(binary);
        router.args(["router", "--id", &ROUTER.to_string(), "--coordinators", &coordinators]);
        router.args(["--sql", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        router.args(["--grpc", &format!("127.0.0.1:{}", free_port()?)]);
        let (router, ready) = Running::start(&mut router, &dir.join("router.log"))?;
        members.push(router);
        let peer = Self::serving("Sextant, processes", binary, &ready, members)?;
        peer.until_joined().await?;
        Ok(peer)
    }

    fn serving(
        name: &'static str,
        binary: &Path,
        ready: &str,
        members: Vec<Running>,
    ) -> Outcome<Self> {
        let [sql, grpc, _] = addresses(ready).ok_or_else(|| format!("{name} printed {ready:?}"))?;
        let processes = Processes::These(members.iter().map(Running::id).collect());
        let version = run(Command::new(binary).arg("--version"))?;
        let version = version.trim_start_matches("sextant ").to_owned();
        let target = Target { config: config(sql), grpc: Some(grpc), processes };
        Ok(Self { name, version, target, _members: members })
    }

    /// Waits until the projector and all indexers are members.
    async fn until_joined(&self) -> Outcome<()> {
        let client = self.target.connect().await?;
        let deadline = Instant::now() + JOIN_TIME_MAX;
        loop {
            let messages = client.simple_query("SHOW NODES").await?;
            let id = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => row.get(0)?.parse::<u64>().ok(),
                _ => None,
            };
            let joined: Vec<u64> = messages.iter().filter_map(id).collect();
            if INDEXERS.iter().chain(&[PROJECTOR]).all(|id| joined.contains(id)) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("{}: only the nodes {joined:?} have joined", self.name).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Returns the command of the binary, without settings from the environment and without
/// certificates.
fn command(binary: &Path) -> Command {
    let mut command = Command::new(PathBuf::from(binary));
    let is_setting = |name: &str| name.starts_with("SEXTANT_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_setting) {
            command.env_remove(name);
        }
    }
    command.env("SEXTANT_INSECURE", "1");
    command
}

fn config(sql: SocketAddr) -> Config {
    let mut config = Config::new();
    config.host(sql.ip().to_string()).port(sql.port()).user("bench").dbname("sextant");
    config
}

impl Peer for Sextant {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn create_bucket(&self, bucket: &str) -> String {
        format!("CREATE BUCKET {bucket}")
    }

    fn drop_bucket(&self, bucket: &str) -> String {
        format!("DROP BUCKET IF EXISTS {bucket} CASCADE")
    }

    fn create_index(&self, bucket: &str, index: Index) -> String {
        let Index { suffix, slices, is_partitioned_by_key } = index;
        let by = if is_partitioned_by_key { " PARTITION BY HASH (n::int8)" } else { "" };
        format!("CREATE INDEX {bucket}_{suffix} ON {bucket} (n::int8){by} WITH (slices = {slices})")
    }

    fn read_indexes(&self) -> &'static [Index] {
        &[ONE_SLICE, EIGHT_SLICES, BY_KEY]
    }

    fn relation(&self, bucket: &str, index: Index) -> String {
        format!("{bucket}_{}", index.suffix)
    }

    fn copy_in(&self, bucket: &str) -> String {
        format!("COPY {bucket} FROM STDIN (FORMAT jsonl)")
    }

    fn line(&self, document: &Document) -> String {
        document.json()
    }

    fn upsert(&self, bucket: &str) -> String {
        format!(
            "INSERT INTO {bucket} (id, doc) VALUES ($1, $2) \
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
        )
    }

    fn upsert_parameters(&self) -> fn(&Document) -> Vec<Parameter> {
        |document| vec![Box::new(document.id.clone()), Box::new(document.json())]
    }

    fn see_everything(&self) -> &'static str {
        "SET consistency = 'request_plus'"
    }

    fn after_load(&self, _bucket: &str) -> Vec<String> {
        Vec::new()
    }
}
