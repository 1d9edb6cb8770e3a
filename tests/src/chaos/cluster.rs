//! The processes of a cluster, the proxies between them, and what an operator does to them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::api::Directory;
use proto::ids::NodeId;
use sextant::wire::{PeerDirectory, Peers, tcp_connect};

use super::Options;
use super::clients::Shared;
use super::disk::SmallDisk;
use super::proxy::{Link, Proxy};

/// The members of the coordinator.
pub const COORDINATORS: [u64; 3] = [1, 2, 3];
/// The projector.
pub const PROJECTOR: u64 = 101;
/// The indexers.
pub const INDEXERS: [u64; 4] = [201, 202, 203, 204];
/// The routers.
pub const ROUTERS: [u64; 2] = [301, 302];
/// Members whose data is on a small disk, where one can be made.
pub const SMALL_DISKS: [u64; 3] = [3, PROJECTOR, 203];
/// A member that does not end within this time after SIGTERM hangs.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// The hidden command of the chaos program that runs a member.
pub const MEMBER: &str = "member";
/// The hidden command of the chaos program that runs a client command of the product.
pub const TOOL: &str = "tool";

/// A role of the command line by the number of a node.
pub fn role(id: u64) -> &'static str {
    match id {
        0..100 => "coordinator",
        100..200 => "projector",
        200..300 => "indexer",
        _ => "router",
    }
}

/// Where users reach a router.
#[derive(Clone, Copy, Debug)]
pub struct RouterAddress {
    /// SQL.
    pub sql: SocketAddr,
    /// gRPC.
    pub grpc: SocketAddr,
}

/// A member: where it listens and what runs of it.
struct Member {
    arguments: Vec<String>,
    data: PathBuf,
    child: Option<Child>,
    disk: Option<SmallDisk>,
    /// Its disk is full.
    is_full: bool,
    /// It has been since the member was started: it may have stopped for that.
    was_full: bool,
}

/// The processes; all are killed when this is dropped.
pub struct Cluster {
    dir: Option<tempfile::TempDir>,
    logs: PathBuf,
    members: BTreeMap<u64, Member>,
    /// From a member to a coordinator.
    to_coordinators: BTreeMap<(u64, u64), Proxy>,
    /// From everybody to a projector or an indexer.
    to_services: BTreeMap<u64, Proxy>,
    routers: Vec<RouterAddress>,
    directory: PeerDirectory,
    /// Faults that cannot be made on this machine, and why.
    pub not_available: Vec<String>,
}

/// An address that nobody has, and that no outgoing connection is given.
fn free_address(taken: &mut fastrand::Rng) -> SocketAddr {
    loop {
        let address = SocketAddr::from(([127, 0, 0, 1], taken.u16(10_000..30_000)));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let script = format!("kill -{name} \"$0\"");
    // One that has ended by itself is found by `supervise`.
    let _sent = Command::new("sh").args(["-c", &script, &id]).stderr(Stdio::null()).status();
}

impl Cluster {
    /// Starts all members; they may still be finding each other.
    pub async fn start(options: &Options) -> Self {
        let mut builder = tempfile::Builder::new();
        let parent = options.dir.clone().unwrap_or_else(std::env::temp_dir);
        let dir = builder.prefix("chaos-").tempdir_in(parent).expect("a directory");
        let logs = dir.path().join("logs");
        std::fs::create_dir_all(&logs).expect("a directory");
        // Other runs on this machine choose other ports.
        let mut random = fastrand::Rng::new();
        let coordinators: BTreeMap<_, _> =
            COORDINATORS.map(|id| (id, free_address(&mut random))).into();
        let direct = coordinators.iter().map(|(id, at)| (NodeId(*id), at.to_string())).collect();
        let mut cluster = Self {
            logs,
            members: BTreeMap::new(),
            to_coordinators: BTreeMap::new(),
            to_services: BTreeMap::new(),
            routers: Vec::new(),
            directory: PeerDirectory(Peers::new(direct, tcp_connect())),
            not_available: Vec::new(),
            dir: Some(dir),
        };
        let indexers = options.indexers.iter().copied();
        let members: Vec<u64> =
            COORDINATORS.into_iter().chain([PROJECTOR]).chain(indexers).chain(ROUTERS).collect();
        for &id in &members {
            let listen = coordinators.get(&id).copied();
            let listen = listen.unwrap_or_else(|| free_address(&mut random));
            cluster.add(id, listen, &coordinators, &mut random, options.small_disks).await;
        }
        for id in members {
            cluster.run(id);
        }
        cluster
    }

    async fn add(
        &mut self,
        id: u64,
        listen: SocketAddr,
        coordinators: &BTreeMap<u64, SocketAddr>,
        random: &mut fastrand::Rng,
        small_disks: bool,
    ) {
        let mut list = Vec::new();
        for (coordinator, address) in coordinators {
            let proxy = Proxy::start(*address).await.expect("a proxy");
            list.push(format!("{coordinator}={}", proxy.address()));
            self.to_coordinators.insert((id, *coordinator), proxy);
        }
        let mut arguments = vec![role(id).to_owned(), "--id".into(), id.to_string()];
        let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        option("--coordinators", list.join(","));
        let data = self.path().join(id.to_string());
        match role(id) {
            "coordinator" => option("--listen", listen.to_string()),
            "router" => {
                let sql = free_address(random);
                option("--listen", listen.to_string());
                option("--sql", sql.to_string());
                option("--http", free_address(random).to_string());
                self.routers.push(RouterAddress { sql, grpc: listen });
            }
            _ => {
                let proxy = Proxy::start(listen).await.expect("a proxy");
                option("--listen", proxy.address().to_string());
                option("--bind", listen.to_string());
                self.to_services.insert(id, proxy);
            }
        }
        let mut disk = None;
        if role(id) != "router" {
            option("--data", data.join("data").display().to_string());
            if small_disks && SMALL_DISKS.contains(&id) {
                disk = SmallDisk::mount(&data)
                    .map_err(|error| {
                        self.not_available
                            .push(format!("a full disk of {} {id}: {error}", role(id)));
                    })
                    .ok();
            }
        }
        let member = Member {
            arguments,
            data: data.join("data"),
            child: None,
            disk,
            is_full: false,
            was_full: false,
        };
        self.members.insert(id, member);
    }

    fn path(&self) -> &Path {
        self.dir.as_ref().expect("kept until the end").path()
    }

    /// Where users reach the routers.
    pub fn routers(&self) -> Vec<RouterAddress> {
        self.routers.clone()
    }

    fn log(&self, id: u64) -> PathBuf {
        self.logs.join(format!("{}-{id}.log", role(id)))
    }

    /// Starts a member, from its data where there is some, unless it runs.
    pub fn run(&mut self, id: u64) {
        let log: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log(id))
            .expect("a log of a member");
        let member = self.members.get_mut(&id).expect("a member");
        if member.child.is_some() {
            return;
        }
        let program = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(program);
        command.arg(MEMBER).args(&member.arguments);
        // It ends when its standard input does: it never outlives this program.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        member.child = Some(command.spawn().expect("a member starts"));
        member.was_full = member.is_full;
    }

    /// `kill -9`.
    pub fn kill(&mut self, id: u64) {
        let Some(mut child) = self.members.get_mut(&id).expect("a member").child.take() else {
            return;
        };
        let _ended_before = child.kill();
        child.wait().expect("a child");
    }

    /// `kill -TERM`, and waits for the end; a violation if it is no clean one.
    pub async fn stop(&mut self, id: u64, shared: &Shared) {
        let Some(mut child) = self.members.get_mut(&id).expect("a member").child.take() else {
            return;
        };
        signal(&child, "TERM");
        let begun = Instant::now();
        loop {
            match child.try_wait().expect("a child") {
                Some(status) if status.success() => return,
                Some(status) => {
                    shared.violation(format!("{} {id} ended with {status} on SIGTERM", role(id)));
                    return;
                }
                None if begun.elapsed() > STOP_WITHIN => {
                    shared.violation(format!("{} {id} does not end on SIGTERM", role(id)));
                    let _gone = child.kill();
                    child.wait().expect("a child");
                    return;
                }
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// SIGSTOP, or SIGCONT.
    pub fn freeze(&self, id: u64, frozen: bool) {
        if let Some(child) = &self.members[&id].child {
            signal(child, if frozen { "STOP" } else { "CONT" });
        }
    }

    /// All ways to a member that have a proxy.
    pub fn set_inbound(&self, id: u64, link: Link) {
        self.to_services.get(&id).iter().for_each(|proxy| proxy.set(link));
        let to = self.to_coordinators.iter().filter(|((_, to), _)| *to == id);
        to.for_each(|(_, proxy)| proxy.set(link));
    }

    /// The ways from a member to the coordinators.
    pub fn set_outbound(&self, id: u64, link: Link) {
        let from = self.to_coordinators.iter().filter(|((from, _), _)| *from == id);
        from.for_each(|(_, proxy)| proxy.set(link));
    }

    /// All ways as they should be.
    pub fn open_all(&self) {
        let proxies = self.to_coordinators.values().chain(self.to_services.values());
        proxies.for_each(|proxy| proxy.set(Link::Open));
    }

    /// Members with a small disk.
    pub fn small_disks(&self) -> Vec<u64> {
        let small = self.members.iter().filter(|(_, member)| member.disk.is_some());
        small.map(|(id, _)| *id).collect()
    }

    /// Fills a member's disk.
    pub fn fill_disk(&mut self, id: u64) {
        let member = self.members.get_mut(&id).expect("a member");
        (member.is_full, member.was_full) = (true, true);
        member.disk.iter().for_each(SmallDisk::fill);
    }

    /// There is room on a member's disk again; if it has stopped, it is started.
    pub fn empty_disk(&mut self, id: u64) {
        let member = self.members.get_mut(&id).expect("a member");
        member.is_full = false;
        member.disk.iter().for_each(SmallDisk::empty);
        self.run(id);
    }

    /// Starts members again that have ended by themselves. That is a violation, unless the disk was full; as long
    /// as it is they stay down.
    pub fn supervise(&mut self, shared: &Shared) {
        let mut ended = Vec::new();
        for (id, member) in &mut self.members {
            let status = member.child.as_mut().and_then(|child| child.try_wait().expect("a child"));
            if let Some(status) = status {
                member.child = None;
                ended.push((*id, status, member.was_full));
            }
        }
        for (id, status, was_full) in ended {
            if was_full {
                shared.report(|report| report.stopped_on_full_disk += 1);
            } else {
                let last = last_lines(&self.log(id));
                shared.violation(format!("{} {id} ended by itself, {status}: {last}", role(id)));
            }
            shared.say(|| format!("{} {id} has ended: {status}", role(id)));
            if !self.members[&id].is_full {
                self.run(id);
            }
        }
    }

    /// The coordinator that leads now, if there is one.
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

    /// Ends all members as an operator does, and verifies the files of the indexers.
    pub async fn stop_and_verify(&mut self, shared: &Arc<Shared>) {
        // Users first, then who serves them.
        for id in self.members.keys().rev().copied().collect::<Vec<_>>() {
            self.stop(id, shared).await;
        }
        let program = std::env::current_exe().expect("the path of this program");
        for (id, member) in self.members.iter().filter(|(id, _)| role(**id) == "indexer") {
            let mut verify = Command::new(&program);
            verify.args([TOOL, "verify", "--data"]).arg(&member.data);
            let ran = verify.stdin(Stdio::null()).output().expect("verify runs");
            if !ran.status.success() {
                let told = [ran.stdout, ran.stderr].concat();
                let told = String::from_utf8_lossy(&told).into_owned();
                shared.violation(format!("verify of indexer {id}: {told}"));
            }
        }
    }

    /// No member may have panicked.
    pub fn judge_logs(&self, shared: &Shared) {
        for id in self.members.keys().copied() {
            let text = std::fs::read(self.log(id)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            if let Some(at) = text.find("panicked at") {
                let told: String = text[at..].chars().take(400).collect();
                shared.violation(format!("{} {id}: {told}", role(id)));
            }
        }
    }

    /// What the commit log of an indexer has.
    pub fn log_bytes(&self, id: u64) -> u64 {
        let Ok(files) = std::fs::read_dir(self.members[&id].data.join("log")) else { return 0 };
        let bytes = |file: std::fs::DirEntry| file.metadata().map_or(0, |known| known.len());
        files.flatten().map(bytes).sum()
    }

    /// Keeps the data and the logs.
    pub fn keep(&mut self) -> Option<PathBuf> {
        self.dir.take().map(tempfile::TempDir::keep)
    }
}

/// The end of a log.
fn last_lines(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in self.members.values_mut() {
            if let Some(child) = &mut member.child {
                let _ended_before = child.kill();
                let _ended_before = child.wait();
            }
        }
    }
}
