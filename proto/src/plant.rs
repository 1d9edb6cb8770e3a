//! Known bugs that can be switched on, to prove that the simulation finds them (`simulate --plant`).
//!
//! A simulation that finds nothing may be unable to; a known bug shows whether it is. Each property that the simulation
//! checks therefore has a *plant*: one line, at the place where the bug would be, that calls [`is`]. Without the cargo
//! feature `plants` the call is a constant and compiles to nothing; with the feature, a plant is switched on for a
//! whole process.

/// A known bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Plant {
    /// A moved slice is shown on its new node from an epoch on that its stream does not cover.
    HandOverUncovered = 1,
    /// A backfill writes entries and no back index.
    BuildSkipsBackIndex,
    /// A moved slice is installed without its back index.
    InstallSkipsBackIndex,
    /// A node that is no longer fed with a slice keeps it and answers from it.
    StaleOwnerAnswers,
    /// An epoch is applied before the mutations of its last vbucket have arrived.
    EpochUncovered,
    /// A copy that skipped an epoch answers for it.
    GapIgnored,
    /// The recovery of the log continues after a torn record.
    TornRecordReplayed,
    /// A part of the log is removed before the manifests of all indexes that need it are synced.
    LogReleasedEarly,
    /// A manifest names fragments that were not synced.
    FragmentsNotSynced,
    /// An epoch counts as durable when it is applied.
    DurableEarly,
    /// Merges drop versions without raising the floor.
    FloorNotRaised,
    /// A merge that does not include the oldest rows drops tombstones.
    TombstonesDroppedAbove,
    /// The filter of a back index denies an existing document.
    FilterMisses,
    /// A rollback forgets the earlier state of documents in memory.
    RollbackForgets,
    /// Slices of the virtual-scan map are left out of virtual scans too.
    MappedSkippedInVirtual,
    /// A slice that returned is read from the position of its base shard.
    ReturnedReadByShard,
    /// A move found at the last base shard gets no virtual scan.
    PartsTakenOnce,
    /// A virtual scan that has no resume entry counts as finished.
    DoneWithoutResume,
    /// A page's token continues after the rows that were read instead of those that were delivered.
    PageCutShort,
    /// A cut splits a statement: one vbucket of it is promoted later.
    StatementSplit,
    /// A write is acknowledged even if its sync failed.
    AcknowledgedEarly,
    /// A vote is not persisted.
    VoteNotPersisted,
    /// A member counts entries before they are on its disk, so that they are applied before a majority has them.
    AppliedEarly,
    /// A repeated statement is executed twice.
    DoneTwice,
    /// A restarted source continues its old branch.
    BranchKept,
    /// A source streams a stability timestamp that is no longer in its history.
    DeadEpochSent,
    /// The rollback point is chosen without regard to the last vbucket.
    PointTooNew,
    /// Merges drop versions that rollback points need.
    PointsForgotten,
    /// An indexer that was down during a rollback does not roll back.
    RollbackMissed,
    /// A build keeps a snapshot of a lost history.
    LostSnapshotKept,
    /// A scan reads before the surviving mutations of a rollback are shown again.
    SurvivorsUnshown,
    /// A vbucket is handed over while its owner still accepts mutations.
    NotReleased,
    /// A copy that is compared with a snapshot keeps documents that the snapshot lacks.
    ResyncKeepsGhosts,
    /// The encoding of keys ignores DESC. The judges share the encoding with the product.
    DescendingIgnored,
    /// The last mutation of a branch counts as one of the next branch. The judges share the branches of positions.
    BranchOffByOne,
    /// The checksum of a slice leaves out the included values.
    ChecksumBlind,
    /// A flush releases the memory of epochs that were applied while it wrote.
    FlushReleasesNewer,
    /// A rollback does not wait for a flush in progress.
    RollbackBesideFlush,
    /// A group of a change log counts as durable before its sync.
    ChangeLogNotSynced,
    /// The checkpoint of an idle bucket covers groups whose documents are in memory only.
    CheckpointAhead,
    /// Segments of a change log are removed with mutations that were not purged.
    SegmentReleasedEarly,
    /// A rewind leaves the documents as they are.
    RewindKeepsDocuments,
    /// A leading copy acknowledges a write before the other copies have it.
    CopiesNotAwaited,
    /// A leading copy whose followers are silent continues without them before the coordinators know.
    SilentCopyIgnored,
    /// A joining copy grows into the set while it lacks groups that were acknowledged before.
    CopyGrowsEarly,
    /// A leading copy answers although its lease has ended.
    LeaseUnchecked,
    /// A returning copy keeps what it has beyond the history of the leader.
    CopyKeepsTail,
    /// A returning copy does not notice that the leader has purged what it lacks.
    CopyPurgeUnnoticed,
    /// An own view does not hide what its transaction has replaced or deleted.
    ReplacedShown,
    /// A commit overlooks that one of its documents was deleted after its snapshot.
    ConflictMissed,
    /// A rollback to a savepoint moves a node's place in a transaction, and keeps the rows after it.
    SavepointKept,
    /// An own view shows the place before its own.
    OwnViewBehind,
    /// A transaction reads documents as they are now, not as of its snapshot.
    DocumentsAtPresent,
    /// An own view shows the changes of another open transaction of the bucket.
    OwnViewLeaks,
    /// A cut passes a commit over several buckets before all of them have it.
    ParticipantLeftOut,
    /// A prepared transaction does not hold its documents.
    PreparedNotHeld,
    /// A finished bucket does not note that it has finished a commit over several buckets.
    FinishedTwice,
    /// A prepared transaction whose session has ended is rolled back although its commit was decided.
    RolledBackDecided,
    /// A replay of the change log leaves out what was prepared.
    PreparedForgotten,
    /// A large commit enters an index without what was written to disk before.
    HalfSpilledShown,
    /// An index that joins a stream gets only the later changes of open transactions.
    BodyLostAtJoin,
    /// A transaction stays open after its commit, so that a repeated commit is applied again.
    CommitAppliedTwice,
    /// A cut passes a part of a producer's commit before the others are there.
    PushedPartLeftOut,
    /// A projector takes a producer's commit for shown when its own parts are durable.
    PushedSettledEarly,
    /// A projector that starts again has forgotten the open commits of producers.
    PushedForgotten,
    /// A vbucket is handed over without the open commits of producers.
    PushedNotHandedOver,
    /// A scan of a session reads an older epoch than an earlier one.
    FloorIgnored,
    /// A retired generation is dropped while a scan still reads it.
    RetiredDropped,
    /// A scan that continues in a retired generation reads slices of the serving one.
    GenerationsMixed,
    /// The slices of a build are readable before an epoch covers the snapshot.
    BuildUncovered,
    /// The first batch of a parallel request to another node is counted twice.
    HedgeCountedTwice,
    /// A rebuilt slice answers epochs from before its snapshot.
    RebuiltBelowFloor,
    /// A version of a data set begins to serve before its last partition is there.
    VersionInPart,
    /// A projector that joins gets partitions of versions that others have.
    PartitionsMoved,
    /// A cancelled build continues, and then serves.
    CancelledServes,
    /// A change of the coordinators is proposed while an earlier one is not applied everywhere.
    TwoMemberChanges,
    /// A removal is answered before the coordinators that stay have it on their disks.
    RemovalNotSettled,
    /// The entries at a split point are in neither of the two slices.
    SplitLosesBoundary,
    /// Superseded versions count in the size from which on an index gets more slices.
    SupersededCounted,
    /// An index is ready when one of its slices can be read.
    ReadyInPart,
}

/// All plants, with name and description.
pub const PLANTS: [(Plant, &str, &str); 80] = [
    (
        Plant::HandOverUncovered,
        "hand-over-uncovered",
        "a mutation is missed at the hand-over of a move",
    ),
    (Plant::BuildSkipsBackIndex, "build-skips-back-index", "rows are doubled after a build"),
    (Plant::InstallSkipsBackIndex, "install-skips-back-index", "rows are doubled after a move"),
    (
        Plant::StaleOwnerAnswers,
        "stale-owner-answers",
        "a slice that has left a node still answers there",
    ),
    (
        Plant::EpochUncovered,
        "epoch-uncovered",
        "an epoch is applied before its last vbucket arrived",
    ),
    (Plant::GapIgnored, "gap-ignored", "a copy that skipped an epoch answers for it"),
    (Plant::TornRecordReplayed, "torn-record-replayed", "recovery replays past a torn record"),
    (
        Plant::LogReleasedEarly,
        "log-released-early",
        "the log is removed before the manifests that replace it are synced",
    ),
    (
        Plant::FragmentsNotSynced,
        "fragments-not-synced",
        "the manifest is written before its fragments are synced",
    ),
    (Plant::DurableEarly, "durable-early", "an epoch counts as durable before the log is synced"),
    (Plant::FloorNotRaised, "floor-not-raised", "a compaction drops versions and leaves the floor"),
    (
        Plant::TombstonesDroppedAbove,
        "tombstones-dropped-above",
        "a merge above the bottom drops tombstones",
    ),
    (Plant::FilterMisses, "filter-misses", "a filter denies an existing document"),
    (Plant::RollbackForgets, "rollback-forgets", "a rollback forgets earlier states of documents"),
    (
        Plant::MappedSkippedInVirtual,
        "mapped-skipped-in-virtual",
        "mapped slices are left out of virtual scans",
    ),
    (
        Plant::ReturnedReadByShard,
        "returned-read-by-shard",
        "a slice that returned is read from the shard's position",
    ),
    (Plant::PartsTakenOnce, "parts-taken-once", "a move found at the last shard is lost"),
    (
        Plant::DoneWithoutResume,
        "done-without-resume",
        "a virtual scan without a resume entry counts as finished",
    ),
    (Plant::PageCutShort, "page-cut-short", "a page's token skips rows that were read ahead"),
    (Plant::StatementSplit, "statement-split", "a cut splits a statement"),
    (Plant::AcknowledgedEarly, "acknowledged-early", "a write is acknowledged before its sync"),
    (Plant::VoteNotPersisted, "vote-not-persisted", "a vote is not persisted"),
    (Plant::AppliedEarly, "applied-early", "an entry is applied before a majority has it on disk"),
    (Plant::DoneTwice, "done-twice", "DDL is applied twice when it is sent again"),
    (Plant::BranchKept, "branch-kept", "a source that lost mutations continues its branch"),
    (Plant::DeadEpochSent, "dead-epoch-sent", "an epoch of a lost history is applied"),
    (Plant::PointTooNew, "point-too-new", "a rollback keeps mutations that were lost"),
    (Plant::PointsForgotten, "points-forgotten", "a rollback does not restore overwritten values"),
    (Plant::RollbackMissed, "rollback-missed", "an indexer that was down does not roll back"),
    (Plant::LostSnapshotKept, "lost-snapshot-kept", "a build shows lost mutations"),
    (Plant::SurvivorsUnshown, "survivors-unshown", "a rollback hides surviving mutations"),
    (Plant::NotReleased, "not-released", "a vbucket's new owner lacks its last mutations"),
    (Plant::ResyncKeepsGhosts, "resync-keeps-ghosts", "a resync keeps deleted documents"),
    (Plant::DescendingIgnored, "descending-ignored", "the encoding of keys ignores DESC"),
    (
        Plant::BranchOffByOne,
        "branch-off-by-one",
        "the last mutation of a branch counts as one of the next",
    ),
    (Plant::ChecksumBlind, "checksum-blind", "copies with other included values count as equal"),
    (
        Plant::FlushReleasesNewer,
        "flush-releases-newer",
        "a flush forgets epochs that were applied meanwhile",
    ),
    (
        Plant::RollbackBesideFlush,
        "rollback-beside-flush",
        "a flush in progress brings back what a rollback removed",
    ),
    (
        Plant::ChangeLogNotSynced,
        "change-log-not-synced",
        "a write is acknowledged before the change log is synced",
    ),
    (
        Plant::CheckpointAhead,
        "checkpoint-ahead",
        "a checkpoint covers groups that its fragments do not have",
    ),
    (
        Plant::SegmentReleasedEarly,
        "segment-released-early",
        "a segment of a change log is removed before its mutations are purged",
    ),
    (
        Plant::RewindKeepsDocuments,
        "rewind-keeps-documents",
        "documents of a lost history stay after a rewind",
    ),
    (
        Plant::CopiesNotAwaited,
        "copies-not-awaited",
        "a write is acknowledged before every copy in sync has it",
    ),
    (
        Plant::SilentCopyIgnored,
        "silent-copy-ignored",
        "a leading copy drops a silent one before the coordinators know",
    ),
    (
        Plant::CopyGrowsEarly,
        "copy-grows-early",
        "a copy is in sync before it has everything acknowledged",
    ),
    (Plant::LeaseUnchecked, "lease-unchecked", "a leading copy answers after its lease has ended"),
    (
        Plant::CopyKeepsTail,
        "copy-keeps-tail",
        "a returning copy keeps what the leader does not have",
    ),
    (
        Plant::CopyPurgeUnnoticed,
        "copy-purge-unnoticed",
        "a returning copy misses what the leader has purged",
    ),
    (
        Plant::ReplacedShown,
        "replaced-shown",
        "a transaction sees rows that it has replaced or deleted",
    ),
    (Plant::ConflictMissed, "conflict-missed", "a commit overlooks a deletion behind its snapshot"),
    (Plant::SavepointKept, "savepoint-kept", "a transaction sees changes that it has rolled back"),
    (Plant::OwnViewBehind, "own-view-behind", "a transaction does not see its latest changes"),
    (
        Plant::DocumentsAtPresent,
        "documents-at-present",
        "a transaction reads documents of others that were changed behind its snapshot",
    ),
    (Plant::OwnViewLeaks, "own-view-leaks", "a transaction sees the changes of another one"),
    (
        Plant::ParticipantLeftOut,
        "participant-left-out",
        "an epoch has a part of a commit over several buckets",
    ),
    (
        Plant::PreparedNotHeld,
        "prepared-not-held",
        "a document changes between the check of a commit and its end",
    ),
    (
        Plant::FinishedTwice,
        "finished-twice",
        "a commit over several buckets is applied twice in one of them",
    ),
    (
        Plant::RolledBackDecided,
        "rolled-back-decided",
        "a commit over several buckets is lost in one of them",
    ),
    (Plant::PreparedForgotten, "prepared-forgotten", "a restart forgets what was prepared"),
    (
        Plant::HalfSpilledShown,
        "half-spilled-shown",
        "a commit shows a part of a transaction that was on disk",
    ),
    (
        Plant::BodyLostAtJoin,
        "body-lost-at-join",
        "a transaction does not see its earlier changes in a new index",
    ),
    (
        Plant::CommitAppliedTwice,
        "commit-applied-twice",
        "a commit that is asked for again is applied again",
    ),
    (
        Plant::PushedPartLeftOut,
        "pushed-part-left-out",
        "an epoch has a part of a producer's commit",
    ),
    (
        Plant::PushedSettledEarly,
        "pushed-settled-early",
        "a producer's commit counts as shown before an epoch has all of it",
    ),
    (
        Plant::PushedForgotten,
        "pushed-forgotten",
        "a projector that starts again has forgotten the open commits of producers",
    ),
    (
        Plant::PushedNotHandedOver,
        "pushed-not-handed-over",
        "a vbucket comes to its new owner without the open commits of producers",
    ),
    (
        Plant::FloorIgnored,
        "floor-ignored",
        "a scan of a session reads an older epoch than an earlier one",
    ),
    (
        Plant::RetiredDropped,
        "retired-dropped",
        "a scan cannot go on, since the generation in which it began is gone",
    ),
    (Plant::GenerationsMixed, "generations-mixed", "a scan reads slices of two generations"),
    (
        Plant::BuildUncovered,
        "build-uncovered",
        "an index that was built lacks what was written meanwhile",
    ),
    (
        Plant::HedgeCountedTwice,
        "hedge-counted-twice",
        "a scan has rows of a slow node and of the one beside it",
    ),
    (
        Plant::RebuiltBelowFloor,
        "rebuilt-below-floor",
        "a rebuilt slice answers epochs from before its snapshot",
    ),
    (
        Plant::VersionInPart,
        "version-in-part",
        "a version of a data set is shown without a partition",
    ),
    (
        Plant::PartitionsMoved,
        "partitions-moved",
        "a version has other projectors than it began with",
    ),
    (
        Plant::CancelledServes,
        "cancelled-serves",
        "an index is replaced although that was cancelled",
    ),
    (
        Plant::TwoMemberChanges,
        "two-member-changes",
        "two majorities of the coordinators have no member in common",
    ),
    (
        Plant::RemovalNotSettled,
        "removal-not-settled",
        "the coordinators that stay wait for the vote of one that was removed",
    ),
    (
        Plant::SplitLosesBoundary,
        "split-loses-boundary",
        "the entries at a split point are in neither slice",
    ),
    (
        Plant::SupersededCounted,
        "superseded-counted",
        "an index gets more slices for versions that nobody reads",
    ),
    (Plant::ReadyInPart, "ready-in-part", "an index serves while one of its slices cannot be read"),
];

/// Finds a plant by name.
pub fn named(name: &str) -> Option<Plant> {
    PLANTS.iter().find(|(_, known, _)| *known == name).map(|(plant, _, _)| *plant)
}

/// True if this bug is switched on.
#[cfg(not(feature = "plants"))]
#[inline(always)]
pub const fn is(_plant: Plant) -> bool {
    false
}

#[cfg(feature = "plants")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Plant;

    static SWITCHED_IN: AtomicU8 = AtomicU8::new(0);

    /// Switches a bug on for the whole process.
    pub fn switch_in(plant: Plant) {
        SWITCHED_IN.store(plant as u8, Ordering::Relaxed);
    }

    /// True if this bug is switched on.
    #[inline]
    pub fn is(plant: Plant) -> bool {
        SWITCHED_IN.load(Ordering::Relaxed) == plant as u8
    }
}

#[cfg(feature = "plants")]
pub use switch::{is, switch_in};
