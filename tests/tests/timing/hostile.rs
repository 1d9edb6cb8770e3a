//! Tests hostile clients at every port of a running node ([`tests::hostile`]). The process
//! continues, its memory stays within a budget, its log stays short, and another client's scans
//! stay quick.
//!
//! `SEXTANT_HOSTILE_SECONDS` is the time of each attack, and of the quiet time before it (60 for
//! the campaign). In the campaign the hostile clients are more, and have the last processor for
//! themselves (with `taskset`): the scans are to share the others with what the node does for the
//! attackers, and not with the attackers, which would be elsewhere. The test fails if 99 of 100
//! scans take twice the quiet time, and longer than a floor ([`Scale::quick`]). In `./test`,
//! attackers have the same processors: a scan may also take some times as long as one of an idle
//! process at the same time, and the test fails if all rounds are slow.
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tests::harness::process::{self, Dev};
use tests::harness::processes::Processes;
use tests::harness::{connect, number_from_env, sql};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use super::idle::{self, Idle};

/// The limit of memory that an attack takes, in KiB. Full ports take 64 log-ins of 150 KiB, 512
/// connections of gRPC of 100 KiB (frames of 16 KiB in both directions, and tables of headers), and
/// 128 of HTTP of 60 KiB: 68 MiB, and as much again for what the allocator keeps.
const MEMORY_MAX_KB: u64 = 136 << 10;
/// The limit of lines that an attack of a minute writes into the log.
const LOG_LINES_MAX: u64 = 1_000;
/// The time below which a scan counts as quick in `./test`, where attackers use the same
/// processors.
const QUICK: Duration = Duration::from_millis(100);
/// The time below which a scan counts as quick in the campaign: it may wait once for its share of
/// the processor (3 ms).
const QUICK_IN_CAMPAIGN: Duration = Duration::from_millis(5);
/// The duration of an attack in `./test`, in seconds.
const SECONDS: u64 = 2;
/// The pause between two scans of the good client.
const PACE: Duration = Duration::from_millis(3);

/// The settings of an attack.
#[derive(Clone, Copy)]
struct Scale {
    seconds: u64,
}

impl Scale {
    fn from_env() -> Self {
        Self { seconds: number_from_env("SEXTANT_HOSTILE_SECONDS", SECONDS) }
    }

    fn time(self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Returns the number of clients: `in_campaign` in the campaign, `in_test` otherwise.
    fn clients(self, in_campaign: usize, in_test: usize) -> usize {
        if self.is_campaign() { in_campaign } else { in_test }
    }

    fn is_campaign(self) -> bool {
        self.seconds > SECONDS
    }

    /// Returns the time below which a scan counts as quick.
    fn quick(self) -> Duration {
        if self.is_campaign() { QUICK_IN_CAMPAIGN } else { QUICK }
    }

    /// Returns the number of rounds, of which all but one may have slow scans.
    fn rounds(self) -> usize {
        if self.is_campaign() { 1 } else { 5 }
    }

    /// In the campaign, leaves the last processor to the attackers: this process and its children use the others.
    async fn divide_processors(self) {
        if let Some(last) = self.processor_of_attackers() {
            let (own, me) = (format!("0-{}", last - 1), std::process::id().to_string());
            let pinned = Command::new("taskset").args(["-a", "-c", "-p", &own, &me]).output().await;
            assert!(pinned.expect("taskset").status.success(), "the processors are divided");
        }
    }

    /// Returns the number of the processor that only the attackers use: the last one that was
    /// available to this process at its start. `None` outside of the campaign.
    fn processor_of_attackers(self) -> Option<usize> {
        static LAST: OnceLock<Option<usize>> = OnceLock::new();
        let last = *LAST.get_or_init(|| {
            let status = std::fs::read_to_string("/proc/self/status").expect("this process");
            let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            let last = allowed.expect("its processors").trim().rsplit([',', '-']).next();
            last.expect("a number").parse().ok().filter(|last| *last > 0)
        });
        last.filter(|_| self.is_campaign())
    }
}

/// The running hostile clients of an attack.
struct Attackers {
    process: Child,
    told: Lines<BufReader<ChildStdout>>,
}

impl Attackers {
    /// Starts the clients, and waits until all have connected.
    async fn start(scale: Scale, attack: &str, ports: &[SocketAddr], clients: usize) -> Self {
        let hostile = process::beside("hostile");
        let mut command = match scale.processor_of_attackers() {
            Some(processor) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &processor.to_string()]).arg(&hostile);
                command
            }
            None => Command::new(&hostile),
        };
        command.args(["--attack", attack, "--clients", &clients.to_string()]);
        command.args(ports.iter().map(SocketAddr::to_string));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("it starts");
        let mut told = BufReader::new(process.stdout.take().expect("piped")).lines();
        let begun = timeout(Duration::from_secs(60), told.next_line()).await;
        assert_eq!(begun.expect("in time").expect("a line").as_deref(), Some("begun"));
        Self { process, told }
    }

    /// Ends the clients; returns the number of their connections.
    async fn end(mut self) -> u64 {
        // The end of their input.
        drop(self.process.stdin.take());
        let told = timeout(Duration::from_secs(60), self.told.next_line()).await;
        let told = told.expect("in time").expect("a line");
        assert!(self.process.wait().await.expect("its end").success(), "no attacker fails");
        told.expect("a number").parse().expect("a number")
    }
}

/// A good client, whose scans are measured.
struct GoodClient(Client);

impl GoodClient {
    /// Connects to a process, and creates an index to scan.
    async fn new(address: SocketAddr) -> Self {
        let client = connect(address).await;
        sql::run(&client, "CREATE BUCKET b; CREATE INDEX i ON b (n::int8) INCLUDE (t)").await;
        for first in (0..1_000).step_by(100) {
            let rows: Vec<_> = (first..first + 100)
                .map(|n| format!("('{n}', '{{\"n\":{n},\"t\":\"text {n}\"}}')"))
                .collect();
            sql::run(&client, &format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))).await;
        }
        Self(client)
    }

    /// Scans for a time; returns the time within which 99 of 100 scans end.
    async fn scan_for(&self, time: Duration) -> Duration {
        let select = self.0.prepare("SELECT n, t FROM i WHERE n BETWEEN $1 AND $2").await;
        let select = select.expect("a statement");
        let (begun, mut times, mut n) = (Instant::now(), Vec::new(), 0i64);
        while begun.elapsed() < time {
            n = (n + 37) % 900;
            let asked = Instant::now();
            let rows = self.0.query(&select, &[&n, &(n + 49)]).await.expect("rows");
            times.push(asked.elapsed());
            assert_eq!(rows.len(), 50, "all rows");
            sleep(PACE).await;
        }
        times.sort();
        times[(times.len() * 99 / 100).min(times.len() - 1)]
    }
}

/// A process under attack, with a good client; in `./test` also the good client of an idle process.
struct Victim {
    process: u32,
    log: PathBuf,
    client: GoodClient,
    idle: Option<(GoodClient, Idle)>,
    sql: SocketAddr,
}

impl Victim {
    async fn new(scale: Scale, process: &Dev, log: &Path) -> Self {
        let idle = match scale.is_campaign() {
            true => None,
            false => {
                let idle = Idle::start();
                Some((GoodClient::new(idle.process.sql_address()).await, idle))
            }
        };
        let sql = process.sql_address();
        let client = GoodClient::new(sql).await;
        Self { process: process.process(), log: log.to_owned(), client, idle, sql }
    }

    /// Scans the process, and the idle process concurrently, for a time. Returns for each the time
    /// within which 99 of 100 scans end.
    async fn scan_for(&self, time: Duration) -> (Duration, Duration) {
        let idle = async {
            match &self.idle {
                Some((client, _)) => client.scan_for(time).await,
                None => Duration::ZERO,
            }
        };
        tokio::join!(self.client.scan_for(time), idle)
    }

    /// Returns the memory of the process in KiB.
    fn memory_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process));
        let status = status.expect("the process lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
        number.expect("the memory of a process that lives")
    }

    fn log_lines(&self) -> usize {
        std::fs::read_to_string(&self.log).unwrap_or_default().lines().count()
    }

    /// Scans in a quiet time and then during an attack, and judges the process.
    ///
    /// In `./test` the machine may stall for a moment, which slows the scans: an attack that makes them slow does so in each
    /// of some rounds.
    async fn judge(&self, scale: Scale, attack: &str, ports: &[SocketAddr], clients: usize) {
        let mut slow = Vec::new();
        for _ in 0..scale.rounds() {
            match self.round(scale, attack, ports, clients).await {
                Ok(()) => return,
                Err(times) => slow.push(times),
            }
        }
        panic!("{attack}: slow scans in each round: {slow:?}");
    }

    /// Runs one round. The error contains the times within which 99 of 100 scans end: in the quiet
    /// time, in the idle process during the attack, and in the process under attack.
    async fn round(
        &self,
        scale: Scale,
        attack: &str,
        ports: &[SocketAddr],
        clients: usize,
    ) -> Result<(), [Duration; 3]> {
        let (quiet, _) = self.scan_for(scale.time()).await;
        let (lines, memory) = (self.log_lines(), self.memory_kb());
        let begun = Instant::now();
        let attackers = Attackers::start(scale, attack, ports, clients).await;
        let (busy, idle) = self.scan_for(scale.time()).await;
        let attacked = self.memory_kb();
        let connections = attackers.end().await;
        let (new_lines, seconds) = (self.log_lines() - lines, begun.elapsed().as_secs());
        println!(
            "{attack}: {connections} connections, p99 {quiet:?} before and {busy:?} meanwhile ({idle:?} of an idle process), \
             memory {memory} KiB before and {attacked} KiB meanwhile, {new_lines} lines of log in {seconds} s"
        );
        let grown = attacked.saturating_sub(memory);
        assert!(grown <= MEMORY_MAX_KB, "{attack}: {grown} KiB of memory more");
        let lines_max = (LOG_LINES_MAX * seconds.max(scale.seconds) / 60) as usize;
        assert!(new_lines <= lines_max, "{attack}: {new_lines} lines of log in {seconds} s");
        // Soon the places are free again.
        sleep(Duration::from_millis(500)).await;
        let late = connect(self.sql);
        let late = timeout(Duration::from_secs(20), late).await.expect("a new session");
        assert_eq!(sql::value(&late, "SELECT count(*) FROM i").await, "1000");
        let allowed = idle::allowed((2 * quiet).max(scale.quick()), idle);
        if busy <= allowed { Ok(()) } else { Err([quiet, idle, busy]) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_clients_at_the_ports_for_users_leave_others_alone() {
    let (scale, dir) = (Scale::from_env(), tempfile::tempdir().expect("a directory"));
    scale.divide_processors().await;
    let log = dir.path().join("log");
    let mut command = process::dev(&dir.path().join("data"));
    command.args(["--nodes", "1"]).stderr(File::create(&log).expect("a file"));
    let dev = Dev::start_by(&mut command);
    let (grpc, http) = (dev.grpc_address(), dev.http_address());
    let victim = Victim::new(scale, &dev, &log).await;
    let all = [victim.sql, grpc, http];
    victim.judge(scale, "rubbish", &all, scale.clients(100, 20)).await;
    victim.judge(scale, "flood", &all, scale.clients(200, 20)).await;
    victim.judge(scale, "silence", &all, scale.clients(2_500, 500)).await;
    victim.judge(scale, "http2", &[grpc], scale.clients(50, 10)).await;
    assert!(dev.terminate().success(), "it ends in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bytes_at_the_ports_for_other_processes_stop_nobody() {
    let scale = Scale::from_env();
    scale.divide_processors().await;
    let processes = Processes::start(&[201]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b; CREATE INDEX i ON b (n::int8)").await;
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('1', '{\"n\":1}')").await;
    let members = [1, 2, 3, 101, 201];
    let ports: Vec<SocketAddr> =
        members.iter().map(|id| processes.address(*id).parse().expect("an address")).collect();
    let rubbish = Attackers::start(scale, "rubbish", &ports, scale.clients(100, 10)).await;
    let http2 = Attackers::start(scale, "http2", &ports, ports.len()).await;
    let (begun, mut written) = (Instant::now(), 1);
    while begun.elapsed() < 2 * scale.time() {
        written += 1;
        let write = format!("INSERT INTO b (id, doc) VALUES ('{written}', '{{\"n\":{written}}}')");
        sql::run(&client, &write).await;
        sleep(Duration::from_millis(20)).await;
    }
    let connections = rubbish.end().await + http2.end().await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    let count = sql::value(&client, "SELECT count(*) FROM i").await;
    assert_eq!(count, written.to_string(), "each write is there");
    println!("{connections} connections to ports of processes");
}
