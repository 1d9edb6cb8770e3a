//! Workloads of transactions while the projector of their buckets and an indexer are killed: histories keep snapshot isolation, sums stay,
//! and commits whose answer is lost are either whole or nothing.
//!
//! `SEXTANT_HISTORY_SECONDS` says how long they run, and `SEXTANT_HISTORY_SEED` draws other ones.
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
const PROJECTOR: u64 = 101;
const INDEXERS: [u64; 3] = [200, 201, 202];
/// Clients of each workload.
const CLIENTS: u64 = 4;
/// Pause before and behind each kill.
const PAUSE: Duration = Duration::from_millis(700);

/// Kills the projector and an indexer in turns, and starts them again.
fn kill_in_turns(mut processes: Processes, time: Duration) -> Processes {
    let began = Instant::now();
    for member in [PROJECTOR, INDEXERS[0]].into_iter().cycle() {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_keep_snapshot_isolation_while_members_are_killed() {
    let processes = Processes::start_with(&[COORDINATOR], &INDEXERS).await;
    let (address, seed) = (processes.sql_address(), number_from_env("SEXTANT_HISTORY_SEED", 1));
    let lists = Lists::create(address, (2, 1), Faults::Restarts, seed).await;
    let bank = Bank::create(address, 1, Faults::Restarts, seed).await;
    let seconds = number_from_env("SEXTANT_HISTORY_SECONDS", 4);
    let time = Duration::from_secs(seconds);
    // The clients go on while a member is started.
    let killing = tokio::task::spawn_blocking(move || kill_in_turns(processes, time));
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
