//! Moves of slices: their cost for concurrent scans, and their speed.
//!
//! One process runs a coordinator, a projector, three indexers and a router, each with its own gRPC port (`loopback`).
//! Files and rows go through TCP as between machines, but all services, the scanner and `cp` share this machine's
//! processors and disk. An index of eight slices with entries of about 130 bytes is loaded; then slices move one after
//! another without a pause.
//!
//! | figure | meaning | required |
//! |---|---|---|
//! | `moved_bytes_per_s` | bytes of a copy, over the time from the moment when the router learns that the move is `pending` until the coordinator learns that the target has a durable copy; nothing else runs | ≥ 0.7 of `cp` |
//! | `cp_bytes_per_s` | `cp` of the same files as soon as the target has them, without a sync | |
//! | `cp_synced_bytes_per_s` | the same, and each file synced afterwards, as the target does | |
//! | `entries_reinserted` | documents that were sent to indexers one by one meanwhile, without any write | 0 |
//! | `scan_rows_per_s_rest`, `…_moves` | rows of ordered scans of 10,000 entries over SQL, one client: before and after the moves, and during them | ratio ≥ 0.8 |
//! | `scan_ms_p99_rest`, `…_moves` | the times of the same scans | ≤ 2 × |
//! | `…_by_8` | the same of 8 clients, which saturate the processors | the same |
//! | `copied_to_done_ms_…` | from the end of a copy to the change of the topology, under a steady load of updates | ≤ 2 s |
//! | `scans_failed` | scans of all phases that failed or returned too few or misordered rows | 0 |

mod loopback;
mod moves;
mod scans;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::Serialize;

use self::loopback::Loopback;
use self::moves::{Moved, Mover};
use self::scans::{Load, Scanned};
use super::Outcome;

const INDEXERS: u64 = 3;
/// The number of slices of the index.
const SLICES: u16 = 8;
/// The numbers of clients with which scans are measured, each with the suffix of its figures'
/// names.
const CLIENTS: [(u64, &str); 2] = [(1, ""), (8, "_by_8")];

/// The settings of a run.
pub struct Run {
    /// The number of documents; each has one entry.
    pub entries: u64,
    /// The duration of each phase's measurement of scans, in seconds.
    pub seconds: u64,
    /// The memory limit of each indexer.
    pub memory_bytes: u64,
    /// True to print JSON lines.
    pub json: bool,
}

/// A figure and its required bound.
#[derive(Serialize)]
struct Figure<'a> {
    bench: &'a str,
    value: f64,
    #[serde(skip_serializing_if = "str::is_empty")]
    asked: &'a str,
    entries: u64,
}

#[allow(clippy::disallowed_methods, reason = "the bench measures real time")]
impl Run {
    fn print(&self, bench: &str, value: f64, asked: &str) -> Outcome<()> {
        let value = (value * 1000.0).round() / 1000.0;
        let figure = Figure { bench, value, asked, entries: self.entries };
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", serde_json::to_string(&figure)?)?,
            false => writeln!(out, "{bench:<28} {value:>16} {asked}")?,
        }
        Ok(out.flush()?)
    }

    /// Runs all phases in an empty directory.
    pub fn run(&self, dir: &Path) -> Outcome<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let cluster = Loopback::start(dir, INDEXERS, self.memory_bytes).await?;
            scans::load(cluster.sql_address(), self.entries, SLICES).await?;
            let mut mover = Mover::new(&cluster, dir.join("cp"))?;
            let sent_before = cluster.sent.load(Ordering::Relaxed);
            let copies = mover.copies(usize::from(SLICES)).await?;
            self.print_copies(&copies)?;
            let mut failed = 0;
            for clients in CLIENTS {
                failed += self.scans(&cluster, &mut mover, clients).await?;
            }
            let sent = cluster.sent.load(Ordering::Relaxed) - sent_before;
            self.print("entries_reinserted", sent as f64, "0")?;
            let failed = failed + self.under_load(&cluster, &mut mover).await?;
            self.print("scans_failed", failed as f64, "0")
        })
    }

    fn print_copies(&self, copies: &[Moved]) -> Outcome<()> {
        let rate = |time: fn(&Moved) -> Duration| {
            let bytes: u64 = copies.iter().map(|moved| moved.bytes).sum();
            bytes as f64 / copies.iter().map(time).sum::<Duration>().as_secs_f64()
        };
        self.print("copies_compared", copies.len() as f64, "")?;
        let rates = [rate(|m| m.copy), rate(|m| m.cp), rate(|m| m.cp_synced)];
        self.print("moved_bytes_per_s", rates[0].round(), "")?;
        self.print("cp_bytes_per_s", rates[1].round(), "")?;
        self.print("cp_synced_bytes_per_s", rates[2].round(), "")?;
        self.print("moved_to_cp", rates[0] / rates[1], "")?;
        self.print("moved_to_cp_synced", rates[0] / rates[2], ">= 0.7")
    }

    /// Measures scans without moves, during moves, and without moves again; returns the number of
    /// failed scans.
    async fn scans(
        &self,
        cluster: &Loopback,
        mover: &mut Mover<'_>,
        (clients, by): (u64, &str),
    ) -> Outcome<u64> {
        let at = cluster.sql_address();
        let phase = Duration::from_secs(self.seconds);
        let mut rest = scans::run(at, self.entries, clients, pause(phase / 2)).await?;
        let moves_before = mover.count;
        let moving = scans::run(at, self.entries, clients, mover.keep_moving(phase)).await?;
        let moves = mover.count - moves_before;
        rest.merge(scans::run(at, self.entries, clients, pause(phase / 2)).await?);
        self.print(&format!("moves{by}"), moves as f64, "")?;
        for (name, scanned) in [("rest", &rest), ("moves", &moving)] {
            self.print(&format!("scan_rows_per_s_{name}{by}"), scanned.rows_per_s().round(), "")?;
            self.print(&format!("scan_ms_p50_{name}{by}"), scanned.ms(50), "")?;
            self.print(&format!("scan_ms_p99_{name}{by}"), scanned.ms(99), "")?;
        }
        self.print(
            &format!("scan_rows_ratio{by}"),
            moving.rows_per_s() / rest.rows_per_s(),
            ">= 0.8",
        )?;
        self.print(&format!("scan_ms_p99_ratio{by}"), moving.ms(99) / rest.ms(99), "<= 2")?;
        Ok(rest.failed + moving.failed)
    }

    /// Measures moves and scans under a steady load of updates; returns the number of failed scans.
    async fn under_load(&self, cluster: &Loopback, mover: &mut Mover<'_>) -> Outcome<u64> {
        let load = Load::begin(cluster.sql_address(), self.entries).await?;
        let mut moved = Vec::new();
        let moving = async {
            moved = mover.keep_moving(Duration::from_secs(self.seconds)).await?;
            Ok(())
        };
        let scanned: Scanned = scans::run(cluster.sql_address(), self.entries, 1, moving).await?;
        self.print("load_updates_per_s", load.end().await?, "")?;
        let mut ms: Vec<f64> = moved.iter().map(|m| m.to_done.as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        let median = ms.get(ms.len() / 2).copied().ok_or("no move ended under load")?;
        self.print("copied_to_done_ms_median", median, "<= 2000")?;
        self.print("copied_to_done_ms_max", ms[ms.len() - 1], "<= 2000")?;
        self.print("moves_under_load", ms.len() as f64, "")?;
        Ok(scanned.failed)
    }
}

#[allow(clippy::disallowed_methods, reason = "the bench measures real time")]
async fn pause(time: Duration) -> Outcome<()> {
    let until = Instant::now() + time;
    tokio::time::sleep_until(until.into()).await;
    Ok(())
}
