//! A cluster with one process for each member, as operators run it. Members can be killed and
//! restarted from their data, and members can be added.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::rpc::api::Directory;
use sextant::wire::{PeerDirectory, Peers, tcp_connect};
use tokio_postgres::Client;

use super::process::{addresses, free_address, sextant, spawn_ready};
use super::{connect, eventually, sql};

const COORDINATORS: [u64; 3] = [1, 2, 3];
const PROJECTOR: u64 = 101;
const ROUTER: u64 = 301;

/// The processes of a cluster, which are killed on drop.
pub struct Processes {
    data: tempfile::TempDir,
    coordinators: Vec<(NodeId, String)>,
    directory: PeerDirectory,
    children: BTreeMap<u64, Child>,
    /// The address of each member, kept over restarts.
    listen: BTreeMap<u64, String>,
    sql: SocketAddr,
    grpc: SocketAddr,
}

/// A process in addition to the members, which is killed on drop.
pub struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ended_before = self.0.kill();
        let _ended_before = self.0.wait();
    }
}

/// Returns the role of a node by its number, as on the command line.
fn role(id: u64) -> &'static str {
    match id {
        0..100 => "coordinator",
        100..200 => "projector",
        200..300 => "indexer",
        _ => "router",
    }
}

impl Processes {
    /// Starts three coordinators, a projector, indexers with these numbers (200 to 299) and a router, and waits until all have
    /// joined.
    pub async fn start(indexers: &[u64]) -> Self {
        Self::start_with(&COORDINATORS, indexers).await
    }

    /// Starts a cluster with these coordinators (1 to 99) and indexers.
    pub async fn start_with(members: &[u64], indexers: &[u64]) -> Self {
        let coordinators: Vec<_> =
            members.iter().map(|id| (NodeId(*id), free_address().to_string())).collect();
        let listen = coordinators.iter().map(|(id, address)| (id.0, address.clone())).collect();
        let mut processes = Self {
            data: tempfile::tempdir().expect("a temporary directory"),
            directory: PeerDirectory(Peers::new(coordinators.clone(), tcp_connect(), &Env::real())),
            coordinators,
            children: BTreeMap::new(),
            listen,
            sql: SocketAddr::from(([127, 0, 0, 1], 0)),
            grpc: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        for id in members.iter().chain(&[PROJECTOR]).chain(indexers) {
            processes.run(*id);
        }
        let ready = processes.run(ROUTER);
        let served = addresses(&ready);
        let [sql, grpc, _] = served.unwrap_or_else(|| panic!("the router printed {ready:?}"));
        (processes.sql, processes.grpc) = (sql, grpc);
        let client = processes.sql().await;
        for id in [PROJECTOR].iter().chain(indexers) {
            processes.joined(&client, *id).await;
        }
        processes
    }

    /// Starts a cluster with these coordinators (1 to 99) and indexers, and waits until all have
    /// joined.
    pub fn run(&mut self, id: u64) -> String {
        self.run_with(id, &[])
    }

    /// Starts a member with further flags; returns its first line.
    pub fn run_with(&mut self, id: u64, flags: &[&str]) -> String {
        let listen = self.listen.entry(id).or_insert_with(|| free_address().to_string()).clone();
        let (child, ready) = self.spawn(id, &listen, &id.to_string(), flags);
        self.children.insert(id, child);
        ready
    }

    /// Kills the router if it runs, and starts it with a data directory, which is empty at first.
    /// Returns its HTTP address; the SQL address changes too.
    pub fn restart_router_with_data(&mut self) -> SocketAddr {
        if self.children.contains_key(&ROUTER) {
            self.kill(ROUTER);
        }
        let data = self.data_of(ROUTER);
        let ready = self.run_with(ROUTER, &["--data", &data.to_string_lossy()]);
        let served = addresses(&ready);
        let [sql, grpc, http] = served.unwrap_or_else(|| panic!("the router printed {ready:?}"));
        (self.sql, self.grpc) = (sql, grpc);
        http
    }

    /// Kills the router if it runs, and starts it with these flags; returns its new addresses of
    /// SQL, gRPC and HTTP.
    pub fn restart_router_with(&mut self, flags: &[&str]) -> [SocketAddr; 3] {
        if self.children.contains_key(&ROUTER) {
            self.kill(ROUTER);
        }
        let ready = self.run_with(ROUTER, flags);
        let served = addresses(&ready).unwrap_or_else(|| panic!("the router printed {ready:?}"));
        (self.sql, self.grpc) = (served[0], served[1]);
        served
    }

    /// Returns the members of the coordinator in the form of `--coordinators`.
    pub fn member_list(&self) -> String {
        let members = self.coordinators.iter().map(|(id, address)| format!("{id}={address}"));
        members.collect::<Vec<_>>().join(",")
    }

    /// Starts a member that may refuse its directory. The error is the output of the ended process.
    pub fn try_run(&mut self, id: u64) -> Result<(), String> {
        let listen = self.listen.entry(id).or_insert_with(|| free_address().to_string()).clone();
        let log = self.data.path().join(format!("{id}.log"));
        let file = std::fs::File::create(&log).expect("a file");
        let mut command = self.command(id, &listen, &id.to_string(), &[]);
        let (mut child, ready) = spawn_ready(command.stderr(file));
        if ready.starts_with("ready ") {
            self.children.insert(id, child);
            return Ok(());
        }
        let _ended_before = child.kill();
        let _ended_before = child.wait();
        Err(std::fs::read_to_string(&log).expect("its log"))
    }

    /// The data directory of a member.
    pub fn data_of(&self, id: u64) -> PathBuf {
        self.data.path().join(id.to_string())
    }

    /// Starts another process with the node id of a member, a new address and an empty directory.
    pub fn run_beside(&self, id: u64) -> Beside {
        Beside(self.spawn(id, &free_address().to_string(), &format!("{id}-beside"), &[]).0)
    }

    /// Returns the cluster in the IDENTITY file of a process started by [`Self::run_beside`]; `-`
    /// before the process has joined a cluster.
    pub fn cluster_beside(&self, id: u64) -> String {
        let path = self.data.path().join(format!("{id}-beside")).join("IDENTITY");
        let text = std::fs::read_to_string(path).expect("the identity");
        let cluster = text.lines().find_map(|line| line.strip_prefix("cluster "));
        cluster.expect("a line with the cluster").to_owned()
    }

    /// Removes the data of a member that does not run.
    pub fn remove_data(&self, id: u64) {
        std::fs::remove_dir_all(self.data_of(id)).expect("it is removed");
    }

    fn spawn(&self, id: u64, listen: &str, directory: &str, flags: &[&str]) -> (Child, String) {
        let (child, ready) = spawn_ready(&mut self.command(id, listen, directory, flags));
        assert!(ready.starts_with("ready "), "{} {id} printed {ready:?}", role(id));
        (child, ready)
    }

    fn command(&self, id: u64, listen: &str, directory: &str, flags: &[&str]) -> Command {
        let members: Vec<_> =
            self.coordinators.iter().map(|(id, address)| format!("{id}={address}")).collect();
        let mut command = sextant();
        command.arg(role(id)).args(["--id", &id.to_string()]);
        command.args(["--coordinators", &members.join(",")]).args(flags);
        match role(id) {
            "router" => {
                command.args(["--sql", "127.0.0.1:0", "--grpc", listen, "--http", "127.0.0.1:0"]);
            }
            _ => {
                command.args(["--peer-listen", listen]);
                command.arg("--data").arg(self.data.path().join(directory));
            }
        }
        command
    }

    /// Waits until the cluster knows a member.
    pub async fn joined(&self, client: &Client, id: u64) {
        eventually(&format!("node {id} joins"), || async move {
            let nodes = sql::simple(client, "SHOW NODES").await.ok()?;
            let is_member = |row: &Vec<Option<String>>| {
                row[0] == Some(id.to_string()) && row[4].as_deref() != Some("removed")
            };
            nodes.iter().any(is_member).then_some(())
        })
        .await;
    }

    /// Kills a member with `kill -9`.
    pub fn kill(&mut self, id: u64) {
        let mut child = self.children.remove(&id).expect("a member that runs");
        child.kill().expect("a running process");
        child.wait().expect("a child");
    }

    /// Waits until a member has ended without a signal; returns its exit code.
    pub async fn ended(&mut self, id: u64) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let child = self.children.get_mut(&id).expect("a member that ran");
            if let Some(status) = child.try_wait().expect("a child") {
                self.children.remove(&id);
                return status.code();
            }
            assert!(Instant::now() < deadline, "member {id} goes on");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Chooses the listen address of a member that is started later.
    pub fn reserve(&mut self, id: u64) -> String {
        self.listen.entry(id).or_insert_with(|| free_address().to_string()).clone()
    }

    /// The listen address of a member.
    pub fn address(&self, id: u64) -> &str {
        &self.listen[&id]
    }

    /// Returns a directory that calls the members as their processes do.
    pub fn directory(&self) -> &PeerDirectory {
        &self.directory
    }

    /// The address of the SQL port.
    pub fn sql_address(&self) -> SocketAddr {
        self.sql
    }

    /// The address of the gRPC port.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc
    }

    /// Opens a SQL session.
    pub async fn sql(&self) -> Client {
        connect(self.sql).await
    }

    /// Returns the present leader of the coordinators.
    pub async fn leader(&self) -> u64 {
        eventually("a coordinator leads", || async {
            for (id, _) in &self.coordinators {
                let member = Arc::clone(&self.directory.coordinator_member(*id).ok()?);
                if let Ok(status) = member.status().await
                    && status.leader == Some(status.node)
                {
                    return Some(status.node.0);
                }
            }
            None
        })
        .await
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in self.children.values_mut() {
            let _ended_before = child.kill();
            let _ended_before = child.wait();
        }
    }
}
