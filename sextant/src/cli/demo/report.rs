//! What the demo found out, as a table for people and a line for programs.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tokio::time::Instant;

/// Figures and checks.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Documents loaded.
    pub documents: u64,
    /// COPY over the wire, durable, with two indexes present.
    pub ingest_docs_per_s: u64,
    /// The index that was created while writes went on: entries a second until it served scans.
    pub build_entries_per_s: u64,
    /// Writes (updates and deletes) while scans ran.
    pub writes: u64,
    /// Scans that were checked.
    pub scans: u64,
    /// A full ordered scan over the wire.
    pub scan_rows_per_s: u64,
    /// From a write to the first `any` scan that shows it, median.
    pub visible_ms_median: f64,
    /// A `request_plus` scan of one row while idle, median.
    pub request_plus_ms_median: f64,
    /// From the leader's death to the next DDL statement that was accepted.
    pub failover_ms: f64,
    /// Leaders killed.
    pub coordinator_failovers: u64,
    /// Slices that were moved to a node that joined, and off one that was drained.
    pub moves: u64,
    /// Moves that were undone.
    pub moves_undone: u64,
    /// How long the moves took in all.
    pub moves_ms: f64,
    /// Checks that did not hold while slices moved.
    pub moves_wrong_answers: u64,
    /// Scans (each of a whole index) per second while slices moved, of those at rest; writes go on in both.
    pub moves_scan_rate_ratio: f64,
    /// The 99th percentile of these scans' times at rest.
    pub scan_rest_ms_p99: f64,
    /// The same while slices moved.
    pub scan_moves_ms_p99: f64,
    /// Checks that held.
    pub checks_passed: u64,
    /// Checks that did not.
    pub checks_failed: u64,
    /// When scans of a whole index began, and how long they took.
    #[serde(skip)]
    pub timed: Vec<(Instant, Duration)>,
    /// The first failures, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// Failures that are told in words; the rest is counted.
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

    /// Takes in what another task found.
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
            "slices moved to a node that joined and off a drained one",
            format!("{} in {:.1} s, {} undone", self.moves, self.moves_ms / 1e3, self.moves_undone),
        );
        row("wrong answers while slices moved", self.moves_wrong_answers.to_string());
        row(
            "scans while slices moved, against rest",
            format!(
                "{:.0} % of the rate; p99 {:.0} ms, not {:.0} ms",
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

/// A progress bar, or nothing where only a program listens.
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

/// What so many of a hundred samples are not above, in milliseconds.
pub fn percentile_ms(mut samples: Vec<Duration>, percent: usize) -> f64 {
    samples.sort();
    let sample = samples.get(samples.len() * percent / 100);
    sample.map_or(f64::NAN, |sample| sample.as_secs_f64() * 1000.0)
}
