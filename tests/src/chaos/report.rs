//! What a run did and found.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// At most so many violations are kept in words.
const TOLD_MAX: usize = 20;

/// What a run did and found; one JSON object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// How long it took, all told.
    pub seconds: f64,
    /// Statements that wrote and were acknowledged.
    pub writes: u64,
    /// Statements that wrote and whose answer was an error or never came.
    pub writes_unknown: u64,
    /// Scans that came to their end and were judged.
    pub scans_checked: u64,
    /// Scans that were refused, or cut off, while members were broken.
    pub scans_refused: u64,
    /// Entries that were compared.
    pub entries_compared: u64,
    /// Pairs of scans of one index at one epoch that were compared.
    pub epochs_compared: u64,
    /// Indexes made and dropped.
    pub ddl: u64,
    /// Statements about the places of slices that were accepted.
    pub moves_asked: u64,
    /// Mutations of the pushed bucket that were acknowledged.
    pub pushed: u64,
    /// Statements about the places of its vbuckets that were accepted.
    pub hand_overs_asked: u64,
    /// What was broken, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Faults that this machine does not allow, and why.
    pub not_available: Vec<String>,
    /// Members that stopped by themselves because their disk was full, and were started again.
    pub stopped_on_full_disk: u64,
    /// From `kill -9` of the leading coordinator until a definition was accepted, in milliseconds.
    pub failover_ms: Vec<u64>,
    /// Their median.
    pub failover_median_ms: Option<u64>,
    /// Scans judged while no coordinator led.
    pub scans_in_failover: u64,
    /// Scans that failed because no coordinator led.
    pub scans_interrupted_by_failover: u64,
    /// The longest time from the last fault until all was whole, in seconds.
    pub heal_s_max: f64,
    /// Entries that should have been there.
    pub lost: u64,
    /// Entries that came more than once.
    pub doubled: u64,
    /// Entries that should not have been there.
    pub ghost: u64,
    /// Statements of which a part was there.
    pub torn: u64,
    /// Entries out of order.
    pub misordered: u64,
    /// All that must not be, in words; the first of them.
    pub violations: Vec<String>,
    /// How many there were.
    pub violations_found: u64,
    /// Where the data of a run with violations is kept.
    pub kept_in: Option<String>,
}

impl Report {
    /// One more fault of a kind.
    pub fn fault(&mut self, kind: &str) {
        *self.faults.entry(kind.to_owned()).or_default() += 1;
    }

    /// Something that must not be.
    pub fn violation(&mut self, what: String) {
        self.violations_found += 1;
        if self.violations.len() < TOLD_MAX {
            self.violations.push(what);
        }
    }

    /// A failover was measured.
    pub fn failover(&mut self, ms: u64) {
        self.failover_ms.push(ms);
        let mut sorted = self.failover_ms.clone();
        sorted.sort_unstable();
        self.failover_median_ms = sorted.get(sorted.len() / 2).copied();
    }

    /// Nothing was violated.
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
