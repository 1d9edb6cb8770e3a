//! Tests that recorded histories of workloads of transactions have snapshot isolation, even while
//! an indexer fails and returns.
//!
//! `SEXTANT_HISTORY_SECONDS` sets the duration of each workload, and `SEXTANT_HISTORY_SEED` selects
//! other ones.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::time::{Duration, Instant};

use proto::model::ids::NodeId;
use tests::harness::{TestCluster, number_from_env};
use tests::history::Kind;
use tests::workloads::Faults;
use tests::workloads::bank::Bank;
use tests::workloads::lists::Lists;

/// The number of concurrent clients.
const CLIENTS: u64 = 8;
/// The time limit for enough operations on the slowest machine.
const SLOWEST: Duration = Duration::from_secs(60);
/// The node id of the first indexer.
const INDEXER: NodeId = NodeId(200);

fn seed() -> u64 {
    number_from_env("SEXTANT_HISTORY_SEED", 1)
}

/// Returns the duration of a workload, unless the environment sets a longer one.
fn run_time(seconds: u64) -> Duration {
    Duration::from_secs(number_from_env("SEXTANT_HISTORY_SECONDS", seconds))
}

/// Waits for the duration of a run, and then until `has_enough` returns true, because a slow
/// machine takes longer.
async fn long_enough(run_time: Duration, has_enough: impl Fn() -> bool) {
    let began = Instant::now();
    while began.elapsed() < run_time || (!has_enough() && began.elapsed() < SLOWEST) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_on_lists_have_snapshot_isolation() {
    let cluster = TestCluster::start(1, 3).await;
    let lists = Lists::create(cluster.sql_address(), (2, 0), Faults::None, seed()).await;
    let stop = async {
        let has_enough = || lists.counts().committed > 50 && lists.counts().aborted > 10;
        long_enough(run_time(3), has_enough).await;
        lists.stop();
    };
    futures::join!(lists.run(CLIENTS), stop);
    let ended = lists.judge().await;
    println!("{ended:?}");
    assert!(ended.committed > 50 && ended.aborted > 10 && ended.unknown == 0, "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_statements_without_transactions_have_anomalies() {
    let cluster = TestCluster::start(1, 3).await;
    let lists = Lists::create(cluster.sql_address(), (1, 0), Faults::None, seed()).await;
    let lists = lists.without_transactions();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lists.stop();
    };
    futures::join!(lists.run(CLIENTS), stop);
    let kinds = lists.anomalies().await;
    for kind in [Kind::LostUpdate, Kind::NonRepeatable, Kind::GSingle, Kind::Internal] {
        assert!(kinds.contains(&kind), "{kind:?} is not among {kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_keep_the_sums_that_each_index_shows() {
    let cluster = TestCluster::start(1, 3).await;
    let bank = Bank::create(cluster.sql_address(), 0, Faults::None, seed()).await;
    let stop = async {
        let has_enough = || bank.counts().0 > 30 && bank.counts().1 > 0;
        long_enough(run_time(2), has_enough).await;
        bank.stop();
    };
    futures::join!(bank.run(CLIENTS), stop);
    let (committed, refused) = bank.judge().await;
    println!("{committed} commits, {refused} conflicts");
    assert!(committed > 30 && refused > 0, "{committed} commits, {refused} conflicts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_keep_snapshot_isolation_while_an_indexer_dies_and_returns() {
    let mut cluster = TestCluster::start(1, 3).await;
    let address = cluster.sql_address();
    let lists = Lists::create(address, (2, 1), Faults::Restarts, seed()).await;
    let bank = Bank::create(address, 1, Faults::Restarts, seed()).await;
    let part = run_time(4) / 4;
    let faults = async {
        for _ in 0..2 {
            tokio::time::sleep(part).await;
            cluster.cluster_mut().kill_indexer(INDEXER);
            tokio::time::sleep(part).await;
            let restarted = cluster.cluster_mut().restart_indexer(INDEXER).await;
            restarted.expect("it starts from its data");
        }
        let has_enough = || lists.counts().committed > 20 && bank.counts().0 > 10;
        long_enough(Duration::ZERO, has_enough).await;
        lists.stop();
        bank.stop();
    };
    futures::join!(lists.run(CLIENTS / 2), bank.run(CLIENTS / 2), faults);
    let (ended, transfers) = (lists.judge().await, bank.judge().await);
    println!("{ended:?}, {transfers:?}");
    assert!(ended.committed > 20 && transfers.0 > 10, "{ended:?}, {transfers:?}");
}
