//! Chaos: a cluster of real processes is broken on purpose for minutes, and every scan is judged.
//!
//! Each member (three coordinators, two projectors, four indexers, two routers) is a process of its own with its
//! own directory. Between the members are small TCP proxies ([`proxy`]), so that each way from one to
//! another can be cut, held, held in one direction, or slowed. Writers change documents by SQL and gRPC, scanners read
//! them, an operator makes and drops indexes and moves slices, and all the while members are killed, stopped,
//! frozen and started again, and their disks filled ([`faults`]). Beside that a producer pushes documents to a bucket
//! whose vbuckets go from one projector to the other and back ([`feed`]).
//!
//! **The judge** ([`history`]) shares no code with the product. What a document says is a pure function of
//! its id and version ([`documents`]); who writes which version when is remembered, with ticks of one counter
//! as the time. A document has one writer, who waits for each answer; so its versions follow each other.
//! A scan may show of a document
//! - nothing newer than what was sent when the scan ended,
//! - with `request_plus` nothing older than what was acknowledged, or shown by another scan, before it began,
//! - all of a statement or nothing of it, also over two scans of a transaction,
//! - each entry once, in order, and exactly those entries that the document of that version has;
//! - two scans of one index at one epoch show the same.
//!
//! A write whose answer was lost may come to pass at any later time: its documents are left alone from then on
//! and may be either version for ever, but never go back once seen.
//!
//! Every half a minute the faults stop, the cluster must be whole within [`HEAL_WITHIN`], everything is compared, and the
//! leading coordinator is killed with nothing else broken: how long until a definition is accepted again, and
//! whether scans were interrupted by it, is measured then.
//!
//! A seed chooses what is done; when it happens is real time, so a run is not repeated to the letter.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "chaos is a client and an operator of the product: real clocks, sockets, files and processes"
)]

pub mod clients;
pub mod cluster;
pub mod compare;
pub mod disk;
pub mod documents;
pub mod faults;
pub mod feed;
pub mod history;
pub mod member;
pub mod operator;
pub mod proxy;
pub mod report;
pub mod restart;
pub mod scanners;
pub mod writers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clients::Shared;
use cluster::Cluster;
use faults::Breaker;
use feed::Feed;
use report::Report;

/// Within this time after the last fault all slices are ready and everything is answered.
pub const HEAL_WITHIN: Duration = Duration::from_secs(60);
/// So long members are broken before all is mended and compared.
const ROUND: Duration = Duration::from_secs(25);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how long members are broken; mending and comparing comes on top.
    pub faults_for: Duration,
    /// What is done when.
    pub seed: u64,
    /// The indexers, by their numbers.
    pub indexers: Vec<u64>,
    /// Some members have small disks, to be filled.
    pub small_disks: bool,
    /// Where the data goes; by default the system's place for such files.
    pub dir: Option<PathBuf>,
    /// Tells what is broken and mended, on standard error.
    pub verbose: bool,
}

/// Runs it; what was found is in the report.
pub async fn run(options: Options) -> Report {
    let begun = Instant::now();
    let mut cluster = Cluster::start(&options).await;
    let shared = Arc::new(Shared::new(options.seed, cluster.routers(), options.verbose));
    shared.report(|report| {
        report.seed = options.seed;
        report.not_available.clone_from(&cluster.not_available);
    });
    let mut whole = match operator::prepare(&shared, &options).await {
        Ok(()) => true,
        Err(error) => {
            shared.violation(format!("the cluster never began to serve: {error}"));
            false
        }
    };
    let mut tasks = clients::Tasks::default();
    let feed = Feed::new(&shared);
    if whole {
        feed.begin(&mut tasks);
        writers::begin(&shared, &mut tasks);
        scanners::begin(&shared, &mut tasks);
        operator::begin(&shared, &mut tasks);
    }
    let mut breaker = Breaker::new(options.seed, Arc::clone(&shared));
    let mut left = options.faults_for;
    while whole && !left.is_zero() {
        let round = left.min(ROUND);
        breaker.run_for(&mut cluster, round).await;
        left -= round;
        whole = mend_and_compare(&mut breaker, &mut cluster, &shared).await;
        if whole {
            breaker.kill_the_leader(&mut cluster).await;
            whole = mend_and_compare(&mut breaker, &mut cluster, &shared).await;
        }
    }
    shared.stop();
    tasks.end().await;
    if whole {
        // Nothing is written any more: exactly what the writers have left.
        compare::everything(&shared, true).await;
        feed.compare().await;
        cluster.stop_and_verify(&shared).await;
    }
    cluster.judge_logs(&shared);
    shared.report(|report| report.seconds = begun.elapsed().as_secs_f64());
    let mut report = shared.take_report();
    if !report.is_clean() {
        report.kept_in = cluster.keep().map(|dir| dir.display().to_string());
    }
    report
}

/// Ends all faults and compares; false where the cluster did not become whole in time.
async fn mend_and_compare(
    breaker: &mut Breaker,
    cluster: &mut Cluster,
    shared: &Arc<Shared>,
) -> bool {
    breaker.mend_all(cluster).await;
    let mended = Instant::now();
    let healed = loop {
        cluster.supervise(shared);
        match compare::is_whole(shared).await {
            Ok(()) => break true,
            Err(missing) if mended.elapsed() > HEAL_WITHIN => {
                shared.violation(format!(
                    "not whole {HEAL_WITHIN:?} after the last fault: {missing}"
                ));
                break false;
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    };
    let took = mended.elapsed().as_secs_f64();
    shared.say(|| format!("whole after {took:.1} s"));
    shared.report(|report| report.heal_s_max = report.heal_s_max.max(took));
    if healed {
        compare::everything(shared, false).await;
    }
    healed
}
