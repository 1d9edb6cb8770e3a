//! The demo's report: a table for people, or one line of JSON for programs.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tokio::time::Instant;

/// The measurements and the results of the checks.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The number of loaded documents.
    pub documents: u64,
    /// The rate of COPY over the SQL port, in durable documents per second, with two indexes.
    pub ingest_docs_per_s: u64,
    /// The rate of an index build during writes, in entries per second, from its start until the
    /// index served scans.
    pub build_entries_per_s: u64,
    /// The number of updates and deletes during scans.
    pub writes: u64,
    /// The number of checked scans.
    pub scans: u64,
    /// The rate of a full ordered scan over the SQL port, in rows per second.
    pub scan_rows_per_s: u64,
    /// The median time from a write to the first `any` scan that returns it, in milliseconds.
    pub visible_ms_median: f64,
    /// The median time of a `request_plus` scan of one row without other load, in milliseconds.
    pub request_plus_ms_median: f64,
    /// The time from the kill of the leader to the next accepted DDL statement, in milliseconds.
    pub failover_ms: f64,
    /// The number of killed leaders.
    pub coordinator_failovers: u64,
    /// The number of slices that moved to the new node and away from the drained one.
    pub moves: u64,
    /// The number of moves that were undone.
    pub moves_undone: u64,
    /// The total time of the moves, in milliseconds.
    pub moves_ms: f64,
    /// The number of failed checks while slices moved.
    pub moves_wrong_answers: u64,
    /// The scan rate while slices moved, divided by the rate without moves. Each scan reads a whole
    /// index, and writes continue in both cases.
    pub moves_scan_rate_ratio: f64,
    /// The 99th percentile of the scan times without moves, in milliseconds.
    pub scan_rest_ms_p99: f64,
    /// The 99th percentile of the scan times while slices moved, in milliseconds.
    pub scan_moves_ms_p99: f64,
    /// The number of passed checks.
    pub checks_passed: u64,
    /// The number of failed checks.
    pub checks_failed: u64,
    /// The start and the duration of each scan of a whole index.
    #[serde(skip)]
    pub timed: Vec<(Instant, Duration)>,
    /// The descriptions of the first failures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// The maximum number of described failures; further failures are only counted.
const FAILURES_TOLD: usize = 20;

impl Report {
    /// Counts a check as passed if `held` is true, and otherwise as failed with the description
    /// `what`.
    pub fn count_check(&mut self, held: bool, what: impl FnOnce() -> String) {
        if held {
            self.checks_passed += 1;
            return;
        }
        self.checks_failed += 1;
        if self.failures.len() < FAILURES_TOLD {
            self.failures.push(what());
        }
    }

    /// Adds the results of another report to this one.
    pub fn merge(&mut self, other: Report) {
        self.writes += other.writes;
        self.scans += other.scans;
        self.checks_passed += other.checks_passed;
        self.checks_failed += other.checks_failed;
        self.timed.extend(other.timed);
        let room = FAILURES_TOLD.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.into_iter().take(room));
    }

    /// Prints the report as a table.
    pub fn print(&self) {
        let mut table = Table::new();
        table.load_style(UTF8_HORIZONTAL_ONLY);
        table.set_header(["figure", "value"]);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        row("documents", self.documents.to_string());
        row(
            "ingest, documents/s (durable, two indexes present)",
            self.ingest_docs_per_s.to_string(),
        );
        row("build while writing, entries/s", self.build_entries_per_s.to_string());
        row("updates and deletes while scanning", self.writes.to_string());
        row("scans checked", self.scans.to_string());
        row("full ordered scan over the wire, rows/s", self.scan_rows_per_s.to_string());
        row("write to visible (any), median", format!("{:.1} ms", self.visible_ms_median));
        row("request_plus while idle, median", format!("{:.1} ms", self.request_plus_ms_median));
        row("leader killed to DDL accepted", format!("{:.0} ms", self.failover_ms));
        row(
            "slices moved to a new node and off a drained one",
            format!("{} in {:.1} s, {} undone", self.moves, self.moves_ms / 1e3, self.moves_undone),
        );
        row("wrong answers while slices moved", self.moves_wrong_answers.to_string());
        row(
            "scans while slices moved, compared with rest",
            format!(
                "{:.0} % of the rate; p99 {:.0} ms instead of {:.0} ms",
                self.moves_scan_rate_ratio * 100.0,
                self.scan_moves_ms_p99,
                self.scan_rest_ms_p99
            ),
        );
        row("checks passed", self.checks_passed.to_string());
        row("checks failed", self.checks_failed.to_string());
        println!("{table}");
        for failure in &self.failures {
            println!("FAILED: {failure}");
        }
    }
}

/// Returns a progress bar; hidden if `quiet`.
pub fn progress(quiet: bool, len: u64, what: &'static str) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(len), target);
    if let Ok(style) =
        ProgressStyle::with_template("{msg:<44} {wide_bar} {pos:>7}/{len:7} {elapsed}")
    {
        bar.set_style(style);
    }
    bar.with_message(what)
}

/// Returns the median in milliseconds.
pub fn median_ms(samples: Vec<Duration>) -> f64 {
    percentile_ms(samples, 50)
}

/// Returns a percentile in milliseconds.
pub fn percentile_ms(mut samples: Vec<Duration>, percent: usize) -> f64 {
    samples.sort();
    let sample = samples.get(samples.len() * percent / 100);
    sample.map_or(f64::NAN, |sample| sample.as_secs_f64() * 1000.0)
}
