//! Known bugs (plants) that can be switched on, to prove that the simulation finds them
//! (`simulate --plant`).
//!
//! A simulation that finds no bug may be unable to find any; a known bug shows whether it is
//! able. Each property that the simulation checks therefore has a *plant*: one line, at the place
//! where the bug would be, that calls [`is`]. Without the cargo feature `plants` the call is a
//! constant and compiles to nothing; with the feature, one plant is switched on for a whole
//! process.

/// Declares the plants: for each bug its name on the command line, and its effect.
macro_rules! plants {
    ($($(#[$bug:meta])* $plant:ident, $name:literal, $effect:literal;)*) => {
        /// A known bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Plant {
            $($(#[$bug])* $plant,)*
        }

        /// All plants, each with its name on the command line and its effect, in the order of
        /// their numbers.
        pub const PLANTS: &[(Plant, &str, &str)] = &[$((Plant::$plant, $name, $effect),)*];
    };
}

plants! {
    /// A moved slice can be read on its new node from an epoch whose mutations the node did not
    /// all receive.
    HandOverUncovered, "hand-over-uncovered", "a mutation is missed at the hand-over of a move";
    /// The build of an index writes entries, but not the back index (from a document to its
    /// entries).
    BuildSkipsBackIndex, "build-skips-back-index", "rows are doubled after a build";
    /// A moved slice is installed on its new node without its back index (from a document to its
    /// entries).
    InstallSkipsBackIndex, "install-skips-back-index", "rows are doubled after a move";
    /// A node whose stream no longer carries a slice still answers from its old copy.
    StaleOwnerAnswers, "stale-owner-answers", "a slice that has left a node still answers there";
    /// An epoch is applied before the mutations of its last vbucket have arrived.
    EpochUncovered, "epoch-uncovered", "an epoch is applied before its last vbucket arrived";
    /// A copy that has not received an epoch answers scans of that epoch.
    GapIgnored, "gap-ignored", "a copy that skipped an epoch answers for it";
    /// The recovery of a log reads on after a torn record, instead of ending there.
    TornRecordReplayed, "torn-record-replayed", "recovery replays past a torn record";
    /// A part of the log is removed before the manifests of all indexes that need it are synced.
    LogReleasedEarly, "log-released-early", "the log is removed before the manifests that replace it are synced";
    /// A manifest names fragments that were not synced.
    FragmentsNotSynced, "fragments-not-synced", "the manifest is written before its fragments are synced";
    /// An epoch counts as durable when it is applied, before the log is synced.
    DurableEarly, "durable-early", "an epoch counts as durable before the log is synced";
    /// A compaction drops superseded versions, but does not raise the oldest readable epoch.
    FloorNotRaised, "floor-not-raised", "a compaction drops versions and leaves the floor";
    /// A compaction that does not include the oldest rows drops tombstones, so deleted rows
    /// reappear.
    TombstonesDroppedAbove, "tombstones-dropped-above", "a merge above the bottom drops tombstones";
    /// The filter of a back index (from a document to its entries) denies an existing document.
    FilterMisses, "filter-misses", "a filter denies an existing document";
    /// A rollback forgets the earlier versions of documents that are in memory.
    RollbackForgets, "rollback-forgets", "a rollback forgets earlier states of documents";
    /// A scan leaves out slices that have moved, even where it should read them on their new
    /// nodes.
    MappedSkippedInVirtual, "mapped-skipped-in-virtual", "mapped slices are left out of virtual scans";
    /// A slice that moved away and back is read from the scan position of its node, not from that
    /// of the slice.
    ReturnedReadByShard, "returned-read-by-shard", "a slice that returned is read from the shard's position";
    /// A scan never reads a slice that was found to have moved while the last node was read.
    PartsTakenOnce, "parts-taken-once", "a move found at the last shard is lost";
    /// The scan of a moved slice counts as finished if it has not read any entry yet.
    DoneWithoutResume, "done-without-resume", "a virtual scan without a resume entry counts as finished";
    /// The token of a page continues after the rows that were read ahead, not after those that
    /// were delivered.
    PageCutShort, "page-cut-short", "a page's token skips rows that were read ahead";
    /// A cut splits a statement: one vbucket's mutations of the statement are published later.
    StatementSplit, "statement-split", "a cut splits a statement";
    /// A write is acknowledged even if its sync failed.
    AcknowledgedEarly, "acknowledged-early", "a write is acknowledged before its sync";
    /// A coordinator votes without storing its vote.
    VoteNotPersisted, "vote-not-persisted", "a vote is not persisted";
    /// A coordinator counts entries before they are on its disk, so they are applied before a
    /// majority has stored them.
    AppliedEarly, "applied-early", "an entry is applied before a majority has it on disk";
    /// A repeated DDL statement is executed a second time.
    DoneTwice, "done-twice", "DDL is applied twice when it is sent again";
    /// A restarted source that has lost mutations continues its old branch of history.
    BranchKept, "branch-kept", "a source that lost mutations continues its branch";
    /// A source streams a stability timestamp that is no longer in its history.
    DeadEpochSent, "dead-epoch-sent", "an epoch of a lost history is applied";
    /// The rollback point is chosen without regard to the last vbucket's history.
    PointTooNew, "point-too-new", "a rollback keeps mutations that were lost";
    /// Compactions drop versions that rollback points need.
    PointsForgotten, "points-forgotten", "a rollback does not restore overwritten values";
    /// An indexer that was down during a rollback does not roll back.
    RollbackMissed, "rollback-missed", "an indexer that was down does not roll back";
    /// The build of an index keeps its snapshot although the source has lost that history.
    LostSnapshotKept, "lost-snapshot-kept", "a build shows lost mutations";
    /// After a rollback, scans read an older epoch, which lacks surviving mutations.
    SurvivorsUnshown, "survivors-unshown", "a rollback hides surviving mutations";
    /// A vbucket is handed over while its owner still accepts mutations.
    NotReleased, "not-released", "a vbucket's new owner lacks its last mutations";
    /// A copy that is compared with a snapshot keeps documents that are not in the snapshot.
    ResyncKeepsGhosts, "resync-keeps-ghosts", "a resync keeps deleted documents";
    /// The encoding of keys ignores DESC. The checkers of the simulation use the same encoding.
    DescendingIgnored, "descending-ignored", "the encoding of keys ignores DESC";
    /// The last mutation of a branch counts as one of the next branch. The checkers of the
    /// simulation use the same function.
    BranchOffByOne, "branch-off-by-one", "the last mutation of a branch counts as one of the next";
    /// The checksum of a slice leaves out the included values, so copies with different ones
    /// count as equal.
    ChecksumBlind, "checksum-blind", "copies with other included values count as equal";
    /// A flush releases the memory of epochs that were applied while it was writing.
    FlushReleasesNewer, "flush-releases-newer", "a flush forgets epochs that were applied meanwhile";
    /// A rollback does not wait for a flush in progress.
    RollbackBesideFlush, "rollback-beside-flush", "a flush in progress brings back what a rollback removed";
    /// A group of changes in a change log counts as durable before its sync.
    ChangeLogNotSynced, "change-log-not-synced", "a write is acknowledged before the change log is synced";
    /// The checkpoint of an idle bucket covers changes whose documents are only in memory.
    CheckpointAhead, "checkpoint-ahead", "a checkpoint covers groups that its fragments do not have";
    /// Segments of a change log are removed although they contain mutations that were not purged.
    SegmentReleasedEarly, "segment-released-early", "a segment of a change log is removed before its mutations are purged";
    /// A source that returns to an earlier point of its history keeps the later documents.
    RewindKeepsDocuments, "rewind-keeps-documents", "documents of a lost history stay after a rewind";
    /// A leading copy acknowledges a write before the other copies have it.
    CopiesNotAwaited, "copies-not-awaited", "a write is acknowledged before every copy in sync has it";
    /// A leading copy continues without a silent follower before the coordinators have removed
    /// the follower.
    SilentCopyIgnored, "silent-copy-ignored", "a leading copy drops a silent one before the coordinators know";
    /// A joining copy counts as in sync while it lacks groups of changes that were acknowledged.
    CopyGrowsEarly, "copy-grows-early", "a copy is in sync before it has everything acknowledged";
    /// A leading copy answers although its lease has ended.
    LeaseUnchecked, "lease-unchecked", "a leading copy answers after its lease has ended";
    /// A copy that returns keeps mutations that are not in the leader's history.
    CopyKeepsTail, "copy-keeps-tail", "a returning copy keeps what the leader does not have";
    /// A copy that returns does not notice that the leader has purged mutations that the copy
    /// lacks.
    CopyPurgeUnnoticed, "copy-purge-unnoticed", "a returning copy misses what the leader has purged";
    /// A transaction's view of its changes does not hide the rows that the transaction has
    /// replaced or deleted.
    ReplacedShown, "replaced-shown", "a transaction sees rows that it has replaced or deleted";
    /// A commit ignores that one of its documents was deleted after its snapshot.
    ConflictMissed, "conflict-missed", "a commit overlooks a deletion after its snapshot";
    /// A rollback to a savepoint moves a node's place in the transaction back, but keeps the rows
    /// of later changes.
    SavepointKept, "savepoint-kept", "a transaction sees changes that it has rolled back";
    /// A transaction's view of its changes lacks the last change.
    OwnViewBehind, "own-view-behind", "a transaction does not see its latest changes";
    /// A transaction reads the present documents instead of those of its snapshot.
    DocumentsAtPresent, "documents-at-present", "a transaction reads documents of others that were changed after its snapshot";
    /// A transaction's view of its changes contains those of another open transaction.
    OwnViewLeaks, "own-view-leaks", "a transaction sees the changes of another one";
    /// A cut includes a commit over several buckets before all of these buckets have it.
    ParticipantLeftOut, "participant-left-out", "an epoch has a part of a commit over several buckets";
    /// A prepared transaction does not lock its documents.
    PreparedNotHeld, "prepared-not-held", "a document changes between the check of a commit and its end";
    /// A bucket does not record that it has finished a commit over several buckets.
    FinishedTwice, "finished-twice", "a commit over several buckets is applied twice in one of them";
    /// A prepared transaction whose session has ended is rolled back, although its commit was
    /// decided.
    RolledBackDecided, "rolled-back-decided", "a commit over several buckets is lost in one of them";
    /// A replay of the change log omits prepared transactions.
    PreparedForgotten, "prepared-forgotten", "a restart forgets what was prepared";
    /// A large commit enters an index without those of its rows that were on disk.
    HalfSpilledShown, "half-spilled-shown", "a commit shows a part of a transaction that was on disk";
    /// An index that joins a stream gets only later changes of open transactions, not the earlier
    /// ones.
    BodyLostAtJoin, "body-lost-at-join", "a transaction does not see its earlier changes in a new index";
    /// A transaction stays open after its commit, so that a repeated commit is applied again.
    CommitAppliedTwice, "commit-applied-twice", "a commit that is asked for again is applied again";
    /// A cut includes a part of a producer's commit before the other parts are committed.
    PushedPartLeftOut, "pushed-part-left-out", "an epoch has a part of a producer's commit";
    /// A projector considers a producer's commit published when its own parts are durable, before
    /// an epoch has all parts.
    PushedSettledEarly, "pushed-settled-early", "a producer's commit counts as shown before an epoch has all of it";
    /// A projector that restarts has lost the open commits of producers.
    PushedForgotten, "pushed-forgotten", "a projector that starts again has forgotten the open commits of producers";
    /// A vbucket is handed over without the open commits of producers.
    PushedNotHandedOver, "pushed-not-handed-over", "a vbucket comes to its new owner without the open commits of producers";
    /// A scan of a session reads an older epoch than an earlier scan of the session.
    FloorIgnored, "floor-ignored", "a scan of a session reads an older epoch than an earlier one";
    /// A retired generation is dropped while a scan still reads it.
    RetiredDropped, "retired-dropped", "a scan cannot go on, since the generation in which it began is gone";
    /// A scan that began on a retired generation continues on slices of the serving one.
    GenerationsMixed, "generations-mixed", "a scan reads slices of two generations";
    /// The slices of a new index can be read before an epoch covers the snapshot of the build.
    BuildUncovered, "build-uncovered", "an index that was built lacks what was written meanwhile";
    /// A scan requests rows from a second node in parallel, and counts the first batch twice.
    HedgeCountedTwice, "hedge-counted-twice", "a scan has rows of a slow node and of the one beside it";
    /// A rebuilt slice answers scans of epochs from before its snapshot.
    RebuiltBelowFloor, "rebuilt-below-floor", "a rebuilt slice answers epochs from before its snapshot";
    /// A version of a data set becomes current before its last partition is loaded.
    VersionInPart, "version-in-part", "a version of a data set is shown without a partition";
    /// A projector that joins later gets partitions of existing versions.
    PartitionsMoved, "partitions-moved", "a version has other projectors than it began with";
    /// A cancelled build continues, and its index serves.
    CancelledServes, "cancelled-serves", "an index is replaced although that was cancelled";
    /// A change of the coordinators' membership is proposed before an earlier one is applied
    /// everywhere.
    TwoMemberChanges, "two-member-changes", "two majorities of the coordinators have no member in common";
    /// The removal of a coordinator is confirmed before the remaining coordinators have stored
    /// it.
    RemovalNotSettled, "removal-not-settled", "the coordinators that stay wait for the vote of one that was removed";
    /// The entries at a split point are in neither of the two slices.
    SplitLosesBoundary, "split-loses-boundary", "the entries at a split point are in neither slice";
    /// The size that makes an index get more slices includes superseded versions of entries.
    SupersededCounted, "superseded-counted", "an index gets more slices for versions that nobody reads";
    /// An index serves when one of its slices can be read, instead of all.
    ReadyInPart, "ready-in-part", "an index serves while one of its slices cannot be read";
}

/// Returns the plant with a name on the command line.
pub fn named(name: &str) -> Option<Plant> {
    PLANTS.iter().find(|(_, known, _)| *known == name).map(|(plant, _, _)| *plant)
}

/// Returns true if this plant is switched on; without the feature `plants` always false.
#[cfg(not(feature = "plants"))]
#[inline(always)]
pub const fn is(_plant: Plant) -> bool {
    false
}

#[cfg(feature = "plants")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Plant;

    /// The number of the plant that is switched on, counted from 1; zero if there is none.
    static SWITCHED_IN: AtomicU8 = AtomicU8::new(0);

    /// Switches a plant on for the whole process.
    pub fn switch_in(plant: Plant) {
        SWITCHED_IN.store(plant as u8 + 1, Ordering::Relaxed);
    }

    /// Returns true if this plant is switched on.
    #[inline]
    pub fn is(plant: Plant) -> bool {
        SWITCHED_IN.load(Ordering::Relaxed) == plant as u8 + 1
    }
}

#[cfg(feature = "plants")]
pub use switch::{is, switch_in};
