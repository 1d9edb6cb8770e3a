//! The chaos test: a cluster of real processes under faults for minutes, in which every scan is
//! judged.
//!
//! Each member (three coordinators, two projectors, four indexers, two routers) is a process with
//! its own directory. Small TCP proxies between the members ([`proxy`]) cut a link, hold it in one
//! or both directions, or slow it. Writers change documents over SQL and gRPC, scanners read them,
//! and an operator creates and drops indexes and moves slices. Meanwhile members are killed,
//! stopped, frozen and restarted, and their disks are filled ([`faults`]). A producer pushes
//! documents to a bucket whose vbuckets are handed over between the projectors ([`feed`]).
//!
//! **The judge** ([`history`]) shares no code with the product. The contents of a document are a
//! pure function of its id and version ([`documents`]). The history records the writer and the time
//! of each version, in ticks of one counter. Each document has one writer, which waits for each
//! answer, so that its versions follow each other. A scan may show of a document
//! - nothing newer than the last version sent when the scan ended,
//! - with `request_plus` nothing older than a version that was acknowledged, or shown by another
//!   scan, before it began,
//! - a whole statement or nothing of it, also over two scans of a transaction,
//! - each entry once, in order, and exactly the entries that the document has at that version;
//! - two scans of one index at one epoch show the same.
//!
//! A write without an answer may take effect at any later time. Its documents are not written
//! again; they may have either version for ever, but never the older one again once the newer one
//! was read.
//!
//! Every half a minute the faults stop. The cluster must be whole within [`HEAL_WITHIN`], and
//! everything is compared. Then the leading coordinator is killed while nothing else is broken, and
//! the run measures the time until a DDL statement is accepted again, and whether scans were
//! interrupted.
//!
//! A seed chooses the actions; their timing is real, so that a run cannot be repeated exactly.
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

/// The time limit after the last fault until all slices are ready and every request is answered.
pub const HEAL_WITHIN: Duration = Duration::from_secs(60);
/// The duration of the faults before all are repaired and everything is compared.
const ROUND: Duration = Duration::from_secs(25);

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The duration of the faults, without the time for repairs and comparisons.
    pub faults_for: Duration,
    /// The seed of all random choices.
    pub seed: u64,
    /// The node numbers of the indexers.
    pub indexers: Vec<u64>,
    /// True to put the data of some members on small disks that can be filled.
    pub small_disks: bool,
    /// The parent of the data directory; by default the system's temporary directory.
    pub dir: Option<PathBuf>,
    /// True to print faults and repairs on standard error.
    pub verbose: bool,
}

/// Runs the cluster, the clients and the faults; returns the report.
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
        // There are no writes any more, so the result must be exactly the writers' last state.
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

/// Repairs all faults and compares everything; false if the cluster did not become whole in time.
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
