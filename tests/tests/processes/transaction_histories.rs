//! Tests workloads of transactions while the projector of their buckets and an indexer are killed:
//! histories have snapshot isolation, sums are constant, and commits whose answer is lost take
//! effect as a whole or not at all.
//!
//! `SEXTANT_HISTORY_SECONDS` sets their duration, and `SEXTANT_HISTORY_SEED` selects other ones.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::thread::sleep;
use std::time::{Duration, Instant};

use tests::harness::number_from_env;
use tests::harness::processes::Processes;
use tests::workloads::Faults;
use tests::workloads::bank::Bank;
use tests::workloads::lists::Lists;

const COORDINATOR: u64 = 1;
const PROJECTORS: [u64; 2] = [101, 102];
const INDEXERS: [u64; 3] = [200, 201, 202];
/// The number of clients of each workload.
const CLIENTS: u64 = 4;
/// The pause before and after each kill.
const PAUSE: Duration = Duration::from_millis(700);

/// Kills and restarts members in turns for `time`.
fn kill_in_turns(mut processes: Processes, members: &[u64], time: Duration) -> Processes {
    let began = Instant::now();
    for member in members.iter().copied().cycle() {
        sleep(PAUSE);
        processes.kill(member);
        sleep(PAUSE);
        processes.run(member);
        if began.elapsed() > time {
            break;
        }
    }
    sleep(PAUSE);
    processes
}

/// Runs both workloads while members are killed in turns.
async fn run(processes: Processes, members: &'static [u64]) {
    let (address, seed) = (processes.sql_address(), number_from_env("SEXTANT_HISTORY_SEED", 1));
    let lists = Lists::create(address, (2, 1), Faults::Restarts, seed).await;
    let bank = Bank::create(address, 1, Faults::Restarts, seed).await;
    let seconds = number_from_env("SEXTANT_HISTORY_SECONDS", 4);
    let time = Duration::from_secs(seconds);
    // The clients go on while a member is started.
    let killing = tokio::task::spawn_blocking(move || kill_in_turns(processes, members, time));
    let faults = async {
        let processes = killing.await.expect("the members start again");
        lists.stop();
        bank.stop();
        processes
    };
    let (_processes, ..) = futures::join!(faults, lists.run(CLIENTS), bank.run(CLIENTS));
    let (ended, transfers) = (lists.judge().await, bank.judge().await);
    println!("{ended:?}, {transfers:?}");
    assert!(ended.committed > 20 && transfers.0 > 10, "{ended:?}, {transfers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_keep_snapshot_isolation_while_members_are_killed() {
    let processes = Processes::start_with(&[COORDINATOR], &INDEXERS).await;
    run(processes, &[PROJECTORS[0], INDEXERS[0]]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_over_buckets_of_two_projectors_are_whole_while_these_are_killed() {
    let mut processes = Processes::start_with(&[COORDINATOR], &INDEXERS).await;
    processes.run(PROJECTORS[1]);
    let client = processes.sql().await;
    processes.joined(&client, PROJECTORS[1]).await;
    run(processes, &PROJECTORS).await;
}
