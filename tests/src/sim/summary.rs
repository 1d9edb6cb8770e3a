//! The summary of a run, and the total over many runs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use proto::env::sim::InterleavingCounts;
use proto::model::ids::{BucketId, Epoch};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The summary of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The seed of the run.
    pub seed: u64,
    /// The simulated time in milliseconds.
    pub simulated_ms: u64,
    /// The number of events, in layers that count them.
    #[serde(default)]
    pub events: u64,
    /// The number of published epochs, in layers that count them.
    #[serde(default)]
    pub epochs: u64,
    /// The number of acknowledged writing statements.
    pub writes: u64,
    /// The number of statements with an unknown outcome.
    pub writes_unknown: u64,
    /// The number of documents that were read by id.
    #[serde(default)]
    pub documents_read: u64,
    /// The number of judged scans.
    pub scans: u64,
    /// The number of compared entries.
    pub entries: u64,
    /// The number of scans that were refused or timed out during faults.
    pub scans_refused: u64,
    /// The number of scans whose epoch was removed before the judge received its cut.
    #[serde(default)]
    pub scans_unjudged: u64,
    /// The numbers of refused scans by error.
    #[serde(default)]
    pub refusals: BTreeMap<String, u64>,
    /// The number of scans that failed after some rows, which were judged.
    #[serde(default)]
    pub parts_judged: u64,
    /// The number of shard scans that were resumed on another node after at least one row.
    #[serde(default)]
    pub resumed: u64,
    /// The numbers of armed disk faults that had an effect, by kind.
    #[serde(default)]
    pub struck: BTreeMap<String, u64>,
    /// The numbers of flipped bits, by their effect.
    #[serde(default)]
    pub flipped: BTreeMap<String, u64>,
    /// The counts from comparing the projectors' stores with their mirrors, by name.
    #[serde(default)]
    pub documents: BTreeMap<String, u64>,
    /// Effects of faults inside the services ([`super::effects`]), by name.
    #[serde(default)]
    pub effects: BTreeMap<String, u64>,
    /// The counts of the interleaving of blocking work, by name.
    #[serde(default)]
    pub interleaved: BTreeMap<String, u64>,
    /// The number of buckets that were dropped with their index.
    #[serde(default)]
    pub buckets_dropped: u64,
    /// The maximum number of slices of an index in a bucket that is written repeatedly.
    #[serde(default)]
    pub outgrown_slices: u64,
    /// The number of scans of transactions that read the epoch of an earlier one.
    #[serde(default)]
    pub pinned_scans: u64,
    /// The number of committed transactions.
    #[serde(default)]
    pub transactions: u64,
    /// The number of statements, scans and reads in transactions.
    #[serde(default)]
    pub transaction_steps: u64,
    /// The number of commits that were refused because of a conflict.
    #[serde(default)]
    pub conflicts: u64,
    /// The number of commits that were refused because the projector had lost the transaction.
    #[serde(default)]
    pub transactions_lost: u64,
    /// The number of acknowledged commits over two buckets.
    #[serde(default)]
    pub joint_commits: u64,
    /// The number of sessions that were lost during a commit over two buckets.
    #[serde(default)]
    pub sessions_lost: u64,
    /// The number of judged moments of two buckets.
    #[serde(default)]
    pub moments_read: u64,
    /// The number of refused INSERTs in transactions.
    #[serde(default)]
    pub inserts_refused: u64,
    /// The number of rollbacks to savepoints.
    #[serde(default)]
    pub savepoint_rollbacks: u64,
    /// The number of scans of transactions that ended after a later change or the end of their
    /// transaction.
    #[serde(default)]
    pub views_passed: u64,
    /// The number of scans whose request was planned from the text of a statement.
    #[serde(default)]
    pub scans_by_text: u64,
    /// The number of generations that have replaced others.
    #[serde(default)]
    pub generations: u64,
    /// The number of scans of a generation that had been replaced by a newer one.
    #[serde(default)]
    pub scans_of_retired: u64,
    /// The number of versions of a data set that became current while they were observed.
    #[serde(default)]
    pub versions: u64,
    /// The number of cancelled versions.
    #[serde(default)]
    pub versions_cancelled: u64,
    /// The number of versions whose files had an unreadable row.
    #[serde(default)]
    pub versions_failed: u64,
    /// The number of first builds during which their index was also built over the next version.
    #[serde(default)]
    pub first_builds_passed: u64,
    /// The number of documents of versions that were read by id.
    #[serde(default)]
    pub version_documents_read: u64,
    /// The number of changed partitions of indexes.
    #[serde(default)]
    pub divided_anew: u64,
    /// The number of cancelled builds.
    #[serde(default)]
    pub builds_cancelled: u64,
    /// The number of removed indexers.
    #[serde(default)]
    pub nodes_removed: u64,
    /// The number of indexers that were removed with FORCE.
    #[serde(default)]
    pub nodes_forced: u64,
    /// The number of texts of several SQL statements that were executed.
    #[serde(default)]
    pub texts_carried_out: u64,
    /// The number of such texts that were rolled back.
    #[serde(default)]
    pub texts_undone: u64,
    /// The number of reads of SQL sessions.
    #[serde(default)]
    pub sql_reads: u64,
    /// The number of coordinators whose log begins with a snapshot at the end.
    #[serde(default)]
    pub logs_cut: u64,
    /// The number of created and dropped indexes.
    pub ddl: u64,
    /// The numbers of faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// The number of rollbacks of the bucket.
    pub rollbacks: u64,
    /// The first epoch after each rollback, and the simulated time at which the judge received it.
    #[serde(skip)]
    pub rolled_back: Vec<(BucketId, Epoch, Duration)>,
    /// The number of accepted statements that move slices.
    pub moves_asked: u64,
    /// The number of requested drains and removals of nodes, accepted or not.
    #[serde(skip)]
    pub drains_asked: u64,
    /// The number of completed moves that the catalog remembers.
    pub moves_ended: u64,
    /// The number of undone moves that the catalog remembers.
    pub moves_undone: u64,
    /// The number of accepted hand-overs of vbuckets and cancellations.
    #[serde(default)]
    pub hand_overs_asked: u64,
    /// The number of vbuckets that changed their owner.
    #[serde(default)]
    pub hand_overs: u64,
    /// The number of statements that change the number of a bucket's copies or move it.
    #[serde(default)]
    pub copies_asked: u64,
    /// The number of buckets that moved to another projector.
    #[serde(default)]
    pub buckets_moved: u64,
    /// The number of judged answers of single copies of a bucket.
    #[serde(default)]
    pub copies_read: u64,
    /// The number of copies of slices that were compared with each other at the end.
    pub copies_compared: u64,
    /// The number of checked data directories of indexers at the end.
    pub directories_verified: u64,
    /// The number of terms with a known leader.
    pub terms: u64,
    /// The last committed position of the coordinators' log.
    pub committed: u64,
    /// A hash of all events and answers in their order, equal in every run of a seed.
    pub trace: u64,
    /// The violations that were found.
    pub violations: Vec<String>,
}

impl Summary {
    /// Adds a value to the trace.
    pub fn note(&mut self, what: impl fmt::Debug) {
        self.trace = xxh3_64_with_seed(format!("{what:?}").as_bytes(), self.trace);
    }

    /// Adds the counts of interleaved work.
    pub fn interleaved(&mut self, counts: InterleavingCounts) {
        let InterleavingCounts { works, pauses, cut_short, vain_tries } = counts;
        self.interleaved = [
            ("works in steps", works),
            ("pauses of works", pauses),
            ("works cut short by a crash", cut_short),
            ("vain tries of locks", vain_tries),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into();
    }

    /// Returns the counts of rare events by name; without them a run proves less than it seems to.
    pub fn seen(&self) -> Vec<(String, u64)> {
        let counts = [
            ("documents read", self.documents_read),
            ("texts of SQL carried out", self.texts_carried_out),
            ("texts of SQL undone", self.texts_undone),
            ("reads of sessions of SQL", self.sql_reads),
            ("logs that begin with a snapshot", self.logs_cut),
            ("shard scans that went on elsewhere", self.resumed),
            ("scans judged up to an error", self.parts_judged),
            ("scans that cannot be judged", self.scans_unjudged),
            ("buckets dropped", self.buckets_dropped),
            ("slices of outgrown indexes", self.outgrown_slices),
            ("scans at a pinned epoch", self.pinned_scans),
            ("transactions committed", self.transactions),
            ("steps of transactions", self.transaction_steps),
            ("commits refused by a conflict", self.conflicts),
            ("commits of lost transactions", self.transactions_lost),
            ("commits over two buckets", self.joint_commits),
            ("sessions lost in a commit", self.sessions_lost),
            ("moments of two buckets", self.moments_read),
            ("inserts refused in transactions", self.inserts_refused),
            ("rollbacks to savepoints", self.savepoint_rollbacks),
            ("own views passed by their transaction", self.views_passed),
            ("scans by text", self.scans_by_text),
            ("nodes removed", self.nodes_removed),
            ("generations that began to serve", self.generations),
            ("scans of retired generations", self.scans_of_retired),
            ("versions that became current", self.versions),
            ("versions cancelled", self.versions_cancelled),
            ("versions with a broken row", self.versions_failed),
            ("first builds passed by a version", self.first_builds_passed),
            ("documents of versions read", self.version_documents_read),
            ("indexes divided anew", self.divided_anew),
            ("builds cancelled", self.builds_cancelled),
            ("nodes removed by force", self.nodes_forced),
            ("changes of copies asked for", self.copies_asked),
            ("buckets moved", self.buckets_moved),
            ("answers of single copies", self.copies_read),
        ];
        let refusals = self.refusals.iter();
        let refusals = refusals.map(|(code, count)| (format!("refused: {code}"), *count));
        let struck = self.struck.iter().map(|(kind, count)| (format!("struck: {kind}"), *count));
        let flipped = self.flipped.iter();
        let flipped = flipped.map(|(fate, count)| (format!("flipped bits: {fate}"), *count));
        let counts = counts.into_iter().map(|(name, count)| (name.to_owned(), count));
        let documents = self.documents.iter().map(|(name, count)| (name.clone(), *count));
        let effects = self.effects.iter().map(|(name, count)| (name.clone(), *count));
        let interleaved = self.interleaved.iter().map(|(name, count)| (name.clone(), *count));
        let all = counts.chain(refusals).chain(struck).chain(flipped);
        all.chain(documents).chain(effects).chain(interleaved).collect()
    }

    /// Counts a fault.
    pub fn fault(&mut self, kind: &str) {
        *self.faults.entry(kind.to_owned()).or_default() += 1;
    }
}

/// The sum of the summaries of many seeds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Total {
    /// The number of seeds.
    pub seeds: u64,
    /// The number of seeds with a violation.
    pub failed: u64,
    /// The simulated time in hours.
    pub simulated_hours: f64,
    /// The real time in seconds.
    pub real_s: f64,
    /// The number of events, in layers that count them.
    pub events: u64,
    /// The number of epochs, in layers that count them.
    pub epochs: u64,
    /// The number of statements: writes, scans, DDL, moves and hand-overs.
    pub operations: u64,
    /// The number of judged scans.
    pub scans: u64,
    /// The number of compared entries.
    pub entries: u64,
    /// The number of completed moves.
    pub moves: u64,
    /// The number of rollbacks.
    pub rollbacks: u64,
    /// The number of vbuckets that changed their owner.
    pub hand_overs: u64,
    /// The number of copies of slices that were compared with each other.
    pub copies_compared: u64,
    /// The number of checked data directories.
    pub directories_verified: u64,
    /// The numbers of faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// Rare events that a campaign must contain ([`Summary::seen`]).
    pub seen: BTreeMap<String, u64>,
}

impl Total {
    /// Adds the summary of a seed.
    pub fn add(&mut self, summary: &Summary) {
        self.seeds += 1;
        self.simulated_hours += summary.simulated_ms as f64 / 3_600_000.0;
        self.events += summary.events;
        self.epochs += summary.epochs;
        self.operations += summary.writes + summary.writes_unknown + summary.ddl;
        self.operations += summary.scans + summary.scans_refused + summary.moves_asked;
        self.scans += summary.scans;
        self.entries += summary.entries;
        self.moves += summary.moves_ended;
        self.rollbacks += summary.rollbacks;
        self.hand_overs += summary.hand_overs;
        self.operations += summary.hand_overs_asked;
        self.copies_compared += summary.copies_compared;
        self.directories_verified += summary.directories_verified;
        for (event, count) in summary.seen() {
            *self.seen.entry(event).or_default() += count;
        }
        for (kind, count) in &summary.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.simulated_hours * 3_600.0 / self.real_s.max(0.001);
        writeln!(f, "{} seeds, {} failed", self.seeds, self.failed)?;
        let (hours, real_s) = (self.simulated_hours, self.real_s);
        writeln!(f, "{hours:.2} h simulated in {real_s:.0} s ({times:.1} ×)")?;
        writeln!(
            f,
            "{} operations, {} moves, {} hand-overs, {} rollbacks; {} scans checked, {} entries compared, {} copies compared, \
             {} directories verified",
            self.operations,
            self.moves,
            self.hand_overs,
            self.rollbacks,
            self.scans,
            self.entries,
            self.copies_compared,
            self.directories_verified
        )?;
        if self.events > 0 {
            writeln!(f, "{} events, {} epochs", self.events, self.epochs)?;
        }
        let faults: Vec<String> =
            self.faults.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        writeln!(f, "faults: {}", faults.join(", "))?;
        let seen: Vec<String> =
            self.seen.iter().map(|(event, count)| format!("{event} {count}")).collect();
        writeln!(f, "seen: {}", seen.join(", "))
    }
}
