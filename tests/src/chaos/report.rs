//! The report of a run: its counts and its violations.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// The maximum number of violations that are described.
const TOLD_MAX: usize = 20;

/// The counts and the violations of a run, as one JSON object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The seed of the run.
    pub seed: u64,
    /// The duration of the run, in seconds.
    pub seconds: f64,
    /// The number of acknowledged writing statements.
    pub writes: u64,
    /// The number of writing statements that failed or got no answer.
    pub writes_unknown: u64,
    /// The number of finished scans that were judged.
    pub scans_checked: u64,
    /// The number of scans that were refused or interrupted during faults.
    pub scans_refused: u64,
    /// The number of entries compared.
    pub entries_compared: u64,
    /// The number of compared pairs of scans of one index at one epoch.
    pub epochs_compared: u64,
    /// The number of created and dropped indexes.
    pub ddl: u64,
    /// The number of accepted statements that move slices.
    pub moves_asked: u64,
    /// The number of acknowledged mutations of the pushed bucket.
    pub pushed: u64,
    /// The number of accepted statements that hand vbuckets over.
    pub hand_overs_asked: u64,
    /// The number of faults of each kind.
    pub faults: BTreeMap<String, u64>,
    /// The kinds of faults that this machine does not allow, with the reason.
    pub not_available: Vec<String>,
    /// The number of times that a member stopped because its disk was full, and was restarted.
    pub stopped_on_full_disk: u64,
    /// The times from `kill -9` of the leading coordinator until a DDL statement was accepted, in milliseconds.
    pub failover_ms: Vec<u64>,
    /// The median of these times, in milliseconds.
    pub failover_median_ms: Option<u64>,
    /// The number of scans that were judged while no coordinator led.
    pub scans_in_failover: u64,
    /// The number of scans that failed because no coordinator led.
    pub scans_interrupted_by_failover: u64,
    /// The longest time from the last fault until the cluster was whole, in seconds.
    pub heal_s_max: f64,
    /// The number of missing entries.
    pub lost: u64,
    /// The number of entries that were returned more than once.
    pub doubled: u64,
    /// The number of entries that should not have been there.
    pub ghost: u64,
    /// The number of statements that were visible in part.
    pub torn: u64,
    /// The number of entries out of order.
    pub misordered: u64,
    /// The descriptions of the first violations.
    pub violations: Vec<String>,
    /// The number of violations.
    pub violations_found: u64,
    /// The directory with the data of a run with violations.
    pub kept_in: Option<String>,
}

impl Report {
    /// Counts a fault.
    pub fn fault(&mut self, kind: &str) {
        *self.faults.entry(kind.to_owned()).or_default() += 1;
    }

    /// Counts a violation.
    pub fn violation(&mut self, what: String) {
        self.violations_found += 1;
        if self.violations.len() < TOLD_MAX {
            self.violations.push(what);
        }
    }

    /// Adds a measured failover time.
    pub fn failover(&mut self, ms: u64) {
        self.failover_ms.push(ms);
        let mut sorted = self.failover_ms.clone();
        sorted.sort_unstable();
        self.failover_median_ms = sorted.get(sorted.len() / 2).copied();
    }

    /// True if there was no violation.
    pub fn is_clean(&self) -> bool {
        self.violations_found == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, seconds, writes, writes_unknown, ddl, moves_asked, .. } = self;
        writeln!(f, "seed {seed}, {seconds:.0} s")?;
        writeln!(
            f,
            "operations: {writes} writes ({writes_unknown} unanswered), {} scans checked, \
             {} refused, {ddl} indexes made and dropped, {moves_asked} moves asked for; \
             {} mutations pushed, {} times hand-overs asked for",
            self.scans_checked, self.scans_refused, self.pushed, self.hand_overs_asked
        )?;
        let faults: Vec<_> = self.faults.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        writeln!(f, "faults: {}", faults.join(", "))?;
        for missing in &self.not_available {
            writeln!(f, "not available here: {missing}")?;
        }
        if self.stopped_on_full_disk > 0 {
            writeln!(f, "stopped on a full disk: {}", self.stopped_on_full_disk)?;
        }
        if let Some(median) = self.failover_median_ms {
            writeln!(
                f,
                "coordinator failover: definitions accepted again after {median} ms (median of {}), \
                 {} scans meanwhile, {} interrupted",
                self.failover_ms.len(),
                self.scans_in_failover,
                self.scans_interrupted_by_failover
            )?;
        }
        writeln!(f, "whole again after at most {:.1} s", self.heal_s_max)?;
        writeln!(
            f,
            "{} entries compared: {} lost, {} doubled, {} ghosts, {} torn statements, {} out of order; \
             {} pairs of scans at one epoch",
            self.entries_compared,
            self.lost,
            self.doubled,
            self.ghost,
            self.torn,
            self.misordered,
            self.epochs_compared
        )?;
        for violation in &self.violations {
            writeln!(f, "VIOLATION: {violation}")?;
        }
        if let Some(dir) = &self.kept_in {
            writeln!(f, "data and logs are kept in {dir}")?;
        }
        writeln!(f, "{} violations", self.violations_found)
    }
}
