//! The processes of a cluster, the proxies between them, and the actions of an operator on them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::rpc::api::Directory;
use sextant::wire::{PeerDirectory, Peers, tcp_connect};

use super::Options;
use super::clients::Shared;
use super::disk::SmallDisk;
use super::member::{Member, role};
use super::proxy::{Link, Proxy};
use crate::harness::process::free_address;

/// The members of the coordinator.
pub const COORDINATORS: [u64; 3] = [1, 2, 3];
/// The node ids of the projectors. The first owns the embedded bucket; both share the pushed one.
pub const PROJECTORS: [u64; 2] = [101, 102];
/// The node ids of the indexers.
pub const INDEXERS: [u64; 4] = [201, 202, 203, 204];
/// The node ids of the routers.
pub const ROUTERS: [u64; 2] = [301, 302];
/// The members whose data is on a small disk, if this machine allows to mount one.
pub const SMALL_DISKS: [u64; 3] = [3, PROJECTORS[0], 203];
/// The hidden command of this program that runs a client command of the product.
pub const TOOL: &str = "tool";

/// The addresses of a router.
#[derive(Clone, Copy, Debug)]
pub struct RouterAddress {
    /// The address of the SQL port.
    pub sql: SocketAddr,
    /// The address of the gRPC port.
    pub grpc: SocketAddr,
}

/// The processes and the proxies.
pub struct Cluster {
    members: BTreeMap<u64, Member>,
    /// The proxies from each member to each coordinator.
    to_coordinators: BTreeMap<(u64, u64), Proxy>,
    /// The proxy in front of a projector or an indexer, for all callers.
    to_services: BTreeMap<u64, Proxy>,
    routers: Vec<RouterAddress>,
    directory: PeerDirectory,
    /// The kinds of faults that this machine does not allow, with the reason.
    pub not_available: Vec<String>,
    logs: PathBuf,
    /// The data directory. It must be dropped last, since the small disks are mounted below it.
    dir: Option<tempfile::TempDir>,
}

impl Cluster {
    /// Starts all members; some may still be joining when this returns.
    pub async fn start(options: &Options) -> Self {
        let mut builder = tempfile::Builder::new();
        let parent = options.dir.clone().unwrap_or_else(std::env::temp_dir);
        let dir = builder.prefix("chaos-").tempdir_in(parent).expect("a directory");
        let logs = dir.path().join("logs");
        std::fs::create_dir_all(&logs).expect("a directory");
        let coordinators: BTreeMap<_, _> = COORDINATORS.map(|id| (id, free_address())).into();
        let direct = coordinators.iter().map(|(id, at)| (NodeId(*id), at.to_string())).collect();
        let mut cluster = Self {
            logs,
            members: BTreeMap::new(),
            to_coordinators: BTreeMap::new(),
            to_services: BTreeMap::new(),
            routers: Vec::new(),
            directory: PeerDirectory(Peers::new(direct, tcp_connect(), &Env::real())),
            not_available: Vec::new(),
            dir: Some(dir),
        };
        let indexers = options.indexers.iter().copied();
        let members: Vec<u64> =
            COORDINATORS.into_iter().chain(PROJECTORS).chain(indexers).chain(ROUTERS).collect();
        for id in members {
            let listen = coordinators.get(&id).copied();
            let listen = listen.unwrap_or_else(free_address);
            cluster.add(id, listen, &coordinators, options.small_disks).await;
        }
        cluster.members.values_mut().for_each(Member::run);
        cluster
    }

    async fn add(
        &mut self,
        id: u64,
        listen: SocketAddr,
        coordinators: &BTreeMap<u64, SocketAddr>,
        small_disks: bool,
    ) {
        let mut list = Vec::new();
        for (coordinator, address) in coordinators {
            let proxy = Proxy::start(*address).await.expect("a proxy");
            list.push(format!("{coordinator}={}", proxy.address()));
            self.to_coordinators.insert((id, *coordinator), proxy);
        }
        let mut arguments = vec!["--coordinators".to_owned(), list.join(",")];
        let mut option =
            |name: &str, value: SocketAddr| arguments.extend([name.to_owned(), value.to_string()]);
        match role(id) {
            "coordinator" => option("--peer-listen", listen),
            "router" => {
                let sql = free_address();
                option("--grpc", listen);
                option("--sql", sql);
                option("--http", free_address());
                self.routers.push(RouterAddress { sql, grpc: listen });
            }
            _ => {
                let proxy = Proxy::start(listen).await.expect("a proxy");
                option("--peer-listen", proxy.address());
                option("--bind", listen);
                self.to_services.insert(id, proxy);
            }
        }
        let dir = self.path().join(id.to_string());
        let mut disk = None;
        if small_disks && SMALL_DISKS.contains(&id) {
            match SmallDisk::mount(&dir) {
                Ok(small) => disk = Some(small),
                Err(error) => {
                    let missing = format!("a full disk of {} {id}: {error}", role(id));
                    self.not_available.push(missing);
                }
            }
        }
        let log = self.logs.join(format!("{}-{id}.log", role(id)));
        self.members.insert(id, Member::new(id, arguments, &dir, log, disk));
    }

    fn path(&self) -> &Path {
        self.dir.as_ref().expect("kept until the end").path()
    }

    /// Returns the addresses of the routers.
    pub fn routers(&self) -> Vec<RouterAddress> {
        self.routers.clone()
    }

    /// Returns the member with a node id.
    pub fn member(&mut self, id: u64) -> &mut Member {
        self.members.get_mut(&id).expect("a member")
    }

    /// Sets the behaviour of all proxies to a member.
    pub fn set_inbound(&self, id: u64, link: Link) {
        self.to_services.get(&id).iter().for_each(|proxy| proxy.set(link));
        let to = self.to_coordinators.iter().filter(|((_, to), _)| *to == id);
        to.for_each(|(_, proxy)| proxy.set(link));
    }

    /// Sets the behaviour of the proxies from a member to the coordinators.
    pub fn set_outbound(&self, id: u64, link: Link) {
        let from = self.to_coordinators.iter().filter(|((from, _), _)| *from == id);
        from.for_each(|(_, proxy)| proxy.set(link));
    }

    /// Opens all proxies, so that no link is disturbed.
    pub fn open_all(&self) {
        let proxies = self.to_coordinators.values().chain(self.to_services.values());
        proxies.for_each(|proxy| proxy.set(Link::Open));
    }

    /// Returns the members with a small disk.
    pub fn small_disks(&self) -> Vec<u64> {
        let small = self.members.iter().filter(|(_, member)| member.has_small_disk());
        small.map(|(id, _)| *id).collect()
    }

    /// Restarts members that have ended without a command. This is a violation unless the member's
    /// disk was full; a member is not restarted while its disk is full.
    pub fn supervise(&mut self, shared: &Shared) {
        for member in self.members.values_mut() {
            let Some((status, was_full)) = member.has_ended() else { continue };
            let name = member.name();
            shared.say(|| format!("{name} has ended: {status}"));
            if was_full {
                shared.report(|report| report.stopped_on_full_disk += 1);
            } else {
                let last = last_lines(&member.printed());
                shared.violation(format!("{name} ended by itself, {status}: {last}"));
            }
            if !member.is_full() {
                member.run();
            }
        }
    }

    /// Returns the present leader of the coordinators; `None` if there is none.
    pub async fn leader(&self) -> Option<u64> {
        for id in COORDINATORS {
            let Ok(member) = self.directory.coordinator_member(NodeId(id)) else { continue };
            let asked = tokio::time::timeout(Duration::from_secs(1), member.status()).await;
            if let Ok(Ok(status)) = asked
                && status.leader == Some(status.node)
            {
                return Some(id);
            }
        }
        None
    }

    /// Ends all members with SIGTERM, routers first, and checks the files of the indexers.
    pub async fn stop_and_verify(&mut self, shared: &Arc<Shared>) {
        for member in self.members.values_mut().rev() {
            if let Err(error) = member.stop().await {
                shared.violation(error);
            }
        }
        let program = std::env::current_exe().expect("the path of this program");
        for member in self.members.values().filter(|member| member.name().starts_with("indexer")) {
            let mut verify = Command::new(&program);
            verify.args([TOOL, "verify", "--data"]).arg(member.data());
            let ran = verify.stdin(Stdio::null()).output().expect("verify runs");
            if !ran.status.success() {
                let output = [ran.stdout, ran.stderr].concat();
                let output = String::from_utf8_lossy(&output).into_owned();
                shared.violation(format!("verify of {}: {output}", member.name()));
            }
        }
    }

    /// Reports each panic in the members' logs as a violation.
    pub fn judge_logs(&self, shared: &Shared) {
        for member in self.members.values() {
            let text = member.printed();
            if let Some(at) = text.find("panicked at") {
                let output: String = text[at..].chars().take(400).collect();
                shared.violation(format!("{}: {output}", member.name()));
            }
        }
    }

    /// Returns the size of an indexer's commit log in bytes.
    pub fn log_bytes(&self, id: u64) -> u64 {
        let Ok(files) = std::fs::read_dir(self.members[&id].data().join("log")) else { return 0 };
        let bytes = |file: std::fs::DirEntry| file.metadata().map_or(0, |known| known.len());
        files.flatten().map(bytes).sum()
    }

    /// Keeps the data and the logs after the run; returns their directory.
    pub fn keep(&mut self) -> Option<PathBuf> {
        self.dir.take().map(tempfile::TempDir::keep)
    }
}

/// Returns the last lines of a member's output.
fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}
