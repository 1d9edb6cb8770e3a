//! The choice, the injection and the repair of faults.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::clients::{PAUSE, Shared, execute};
use super::cluster::{COORDINATORS, Cluster, INDEXERS, PROJECTORS, ROUTERS};
use super::member::role;
use super::proxy::Link;

/// The maximum number of concurrent faults.
const AT_ONCE: usize = 2;
/// The interval between two checks for faults to begin or to repair.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The range of pauses between two faults, in milliseconds.
const REST_MS: std::ops::Range<u64> = 100..1500;
/// The range of the duration of a fault, in milliseconds.
const LASTS_MS: std::ops::Range<u64> = 50..6000;
/// The time limit for a DDL statement after the leader was killed. A longer time is a violation.
const FAILOVER_MAX: Duration = Duration::from_secs(20);

/// A kind of fault, with its injection and its repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// `kill -9`, then a restart.
    Kill,
    /// SIGTERM, then a restart.
    Stop,
    /// SIGSTOP, then SIGCONT.
    Freeze,
    /// Connections to a member are cut, held or slowed.
    Inbound(Link),
    /// Connections from a member are cut, held or slowed.
    Outbound(Link),
    /// Connections in both directions are cut, held or slowed.
    Alone(Link),
    /// The member's disk is filled.
    FullDisk,
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill -9",
            Self::Stop => "restart",
            Self::Freeze => "freeze",
            Self::FullDisk => "full disk",
            Self::Inbound(link) | Self::Outbound(link) | Self::Alone(link) => match link {
                Link::Open => "open",
                Link::Cut => "cut",
                Link::Held { there: true, back: true } => "held",
                Link::Held { .. } => "held one way",
                Link::Slow(_) => "slow",
            },
        }
    }
}

/// A fault in progress.
struct Active {
    fault: Fault,
    id: u64,
    until: Instant,
}

/// The task that injects and repairs faults.
pub struct Breaker {
    random: fastrand::Rng,
    shared: Arc<Shared>,
    active: Vec<Active>,
    failovers: u32,
}

impl Breaker {
    /// A breaker without active faults.
    pub fn new(seed: u64, shared: Arc<Shared>) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { random, shared, active: Vec::new(), failovers: 0 }
    }

    /// Injects one fault after another for a time; some may be active when this returns.
    pub async fn run_for(&mut self, cluster: &mut Cluster, time: Duration) {
        let end = Instant::now() + time;
        let mut next = Instant::now();
        while Instant::now() < end {
            sleep(LOOK_EVERY).await;
            cluster.supervise(&self.shared);
            let now = Instant::now();
            let (over, active): (Vec<_>, Vec<_>) =
                self.active.drain(..).partition(|active| active.until <= now);
            self.active = active;
            for active in over {
                self.mend(cluster, active);
            }
            if now >= next && self.active.len() < AT_ONCE {
                next = now + Duration::from_millis(self.random.u64(REST_MS));
                self.inject_fault(cluster).await;
            }
        }
    }

    /// Repairs all active faults.
    pub async fn mend_all(&mut self, cluster: &mut Cluster) {
        for active in std::mem::take(&mut self.active) {
            self.mend(cluster, active);
        }
        cluster.open_all();
        sleep(LOOK_EVERY).await;
        cluster.supervise(&self.shared);
    }

    async fn inject_fault(&mut self, cluster: &mut Cluster) {
        let fault = self.choose();
        let Some(id) = self.victim(cluster, fault).await else { return };
        if self.active.iter().any(|active| active.id == id) {
            return;
        }
        let lasts = Duration::from_millis(self.random.u64(LASTS_MS));
        let kind = format!("{} {}", fault.name(), role(id));
        self.shared.say(|| format!("{kind} {id} for {} ms: {fault:?}", lasts.as_millis()));
        self.shared.report(|report| report.fault(&kind));
        match fault {
            Fault::Kill => cluster.member(id).kill(),
            Fault::Stop => {
                if let Err(error) = cluster.member(id).stop().await {
                    self.shared.violation(error);
                }
            }
            Fault::Freeze => cluster.member(id).freeze(true),
            Fault::Inbound(link) => cluster.set_inbound(id, link),
            Fault::Outbound(link) => cluster.set_outbound(id, link),
            Fault::Alone(link) => {
                cluster.set_inbound(id, link);
                cluster.set_outbound(id, link);
            }
            Fault::FullDisk => cluster.member(id).fill_disk(),
        }
        self.active.push(Active { fault, id, until: Instant::now() + lasts });
    }

    fn choose(&mut self) -> Fault {
        let link = match self.random.u32(..5) {
            0 => Link::Cut,
            1 => Link::Held { there: true, back: true },
            2 => Link::Held { there: true, back: false },
            3 => Link::Held { there: false, back: true },
            _ => Link::Slow(Duration::from_millis(self.random.u64(5..100))),
        };
        match self.random.u32(..12) {
            0..4 => Fault::Kill,
            4 | 5 => Fault::Stop,
            6 | 7 => Fault::Freeze,
            8 => Fault::Inbound(link),
            9 => Fault::Outbound(link),
            10 => Fault::Alone(link),
            _ => Fault::FullDisk,
        }
    }

    async fn victim(&mut self, cluster: &Cluster, fault: Fault) -> Option<u64> {
        if fault == Fault::FullDisk {
            let small = cluster.small_disks();
            return self.random.choice(small);
        }
        let can_be_called = !matches!(fault, Fault::Inbound(_));
        match self.random.u32(..10) {
            0 | 1 => cluster.leader().await,
            2 => self.random.choice(COORDINATORS),
            3 | 4 => self.random.choice(PROJECTORS),
            // The callers of a router are users, and there is no proxy in between.
            5 if can_be_called => self.random.choice(ROUTERS),
            _ => self.random.choice(INDEXERS),
        }
    }

    fn mend(&self, cluster: &mut Cluster, active: Active) {
        let Active { fault, id, .. } = active;
        self.shared.say(|| format!("mended: {} {} {id}", fault.name(), role(id)));
        match fault {
            Fault::Kill | Fault::Stop => cluster.member(id).run(),
            Fault::Freeze => cluster.member(id).freeze(false),
            Fault::Inbound(_) => cluster.set_inbound(id, Link::Open),
            Fault::Outbound(_) => cluster.set_outbound(id, Link::Open),
            Fault::Alone(_) => {
                cluster.set_inbound(id, Link::Open);
                cluster.set_outbound(id, Link::Open);
            }
            Fault::FullDisk => {
                cluster.member(id).empty_disk();
                // The document store accepts no writes after a failed one; the process must be restarted, as its error
                // tells the operator.
                if PROJECTORS.contains(&id) {
                    cluster.member(id).kill();
                    cluster.member(id).run();
                }
            }
        }
    }

    /// Kills the leading coordinator while there is no other fault, and measures the time until a
    /// DDL statement is accepted.
    pub async fn kill_the_leader(&mut self, cluster: &mut Cluster) {
        self.failovers += 1;
        // A session from before the failover, such as a client would have.
        let session = self.shared.sql(self.failovers as usize).await;
        let (Ok(client), Some(leader)) = (session, cluster.leader().await) else {
            self.shared.violation("a whole cluster has no leader or no router".into());
            return;
        };
        self.shared.report(|report| report.fault("kill -9 the leader alone"));
        self.shared.set_failover(true);
        let begun = Instant::now();
        cluster.member(leader).kill();
        let name = format!("failover_{}", self.failovers);
        let create =
            format!("CREATE INDEX IF NOT EXISTS {name} ON c (n) WITH (defer_build = true)");
        let accepted = loop {
            match execute(&client, &create).await {
                Ok(()) => break true,
                Err(error) if begun.elapsed() > FAILOVER_MAX => {
                    self.shared.violation(format!(
                        "no definition is accepted after the leader's death: {error}"
                    ));
                    break false;
                }
                Err(_) => sleep(PAUSE / 10).await,
            }
        };
        let took = begun.elapsed().as_millis() as u64;
        if accepted {
            self.shared.say(|| {
                format!("definitions accepted {took} ms after the death of leader {leader}")
            });
            self.shared.report(|report| report.failover(took));
        }
        // Scans that wait for the next leader get time to finish.
        sleep(Duration::from_secs(1)).await;
        self.shared.set_failover(false);
        cluster.member(leader).run();
        if let Err(error) = execute(&client, &format!("DROP INDEX {name}")).await {
            self.shared.say(|| format!("dropping {name}: {error}"));
        }
    }
}
