//! The demo's report: a table for people, or one line of JSON for programs.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tokio::time::Instant;

/// Measurements and check results.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Documents loaded.
    pub documents: u64,
    /// Rate of COPY over the SQL port: durable, with two indexes present.
    pub ingest_docs_per_s: u64,
    /// Build rate of the index that was created during writes, until it served scans.
    pub build_entries_per_s: u64,
    /// Updates and deletes while scans ran.
    pub writes: u64,
    /// Scans that were checked.
    pub scans: u64,
    /// Rate of a full ordered scan over the SQL port.
    pub scan_rows_per_s: u64,
    /// Median time from a write to the first `any` scan that shows it.
    pub visible_ms_median: f64,
    /// Median time of a `request_plus` scan of one row without other load.
    pub request_plus_ms_median: f64,
    /// Time from the kill of the leader to the next accepted DDL statement.
    pub failover_ms: f64,
    /// Leaders killed.
    pub coordinator_failovers: u64,
    /// The number of slices moved to the new node and off the drained one.
    pub moves: u64,
    /// Moves that were undone.
    pub moves_undone: u64,
    /// Total time of the moves.
    pub moves_ms: f64,
    /// Failed checks while slices moved.
    pub moves_wrong_answers: u64,
    /// Scan rate while slices moved, divided by the rate at rest. Each scan reads a whole index, and writes continue in
    /// both cases.
    pub moves_scan_rate_ratio: f64,
    /// 99th percentile of the scan times at rest.
    pub scan_rest_ms_p99: f64,
    /// 99th percentile of the scan times while slices moved.
    pub scan_moves_ms_p99: f64,
    /// The number of passed checks.
    pub checks_passed: u64,
    /// The number of failed checks.
    pub checks_failed: u64,
    /// Start and duration of the scans of a whole index.
    #[serde(skip)]
    pub timed: Vec<(Instant, Duration)>,
    /// Descriptions of the first failures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// Maximum of described failures; further ones are only counted.
const FAILURES_TOLD: usize = 20;

impl Report {
    /// Counts a check.
    pub fn check(&mut self, held: bool, what: impl FnOnce() -> String) {
        if held {
            self.checks_passed += 1;
            return;
        }
        self.checks_failed += 1;
        if self.failures.len() < FAILURES_TOLD {
            self.failures.push(what());
        }
    }

    /// Adds the results of another task.
    pub fn merge(&mut self, other: Report) {
        self.writes += other.writes;
        self.scans += other.scans;
        self.checks_passed += other.checks_passed;
        self.checks_failed += other.checks_failed;
        self.timed.extend(other.timed);
        let room = FAILURES_TOLD.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.into_iter().take(room));
    }

    /// Prints the table.
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

/// A progress bar; hidden if `quiet`.
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

/// The median, in milliseconds.
pub fn median_ms(samples: Vec<Duration>) -> f64 {
    percentile_ms(samples, 50)
}

/// A percentile, in milliseconds.
pub fn percentile_ms(mut samples: Vec<Duration>, percent: usize) -> f64 {
    samples.sort();
    let sample = samples.get(samples.len() * percent / 100);
    sample.map_or(f64::NAN, |sample| sample.as_secs_f64() * 1000.0)
}
