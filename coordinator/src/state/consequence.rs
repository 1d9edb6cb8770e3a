//! The consequences of a command for other families than its own. They are plain values, which
//! `carry_out` passes to the sub-states of all families.

use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::BucketInfo;
use proto::model::cut::{Cut, Position};
use proto::model::history::FailoverLogs;
use proto::model::identity::UniqueId;
use proto::model::ids::{
    BucketId, Epoch, IndexId, LocalIndexId, MoveId, NodeId, SliceNo, VbucketId,
};
use proto::model::index::IndexInfo;
use proto::model::moves::{EndedMove, MoveStage, SliceMove};
use proto::model::rollback::{DeadEpochs, Rollback};

use super::indexes::placement::Placement;

/// A consequence of a command for other families. The method `on` of each sub-state applies it to
/// that sub-state.
#[derive(Clone, Debug)]
pub(super) enum Consequence {
    /// A bucket was created, with its random id and its desired number of copies.
    BucketMade { info: Arc<BucketInfo>, unique: UniqueId, copies: Option<u8> },
    /// A bucket was dropped, with its indexes and with all generations over it.
    BucketDropped(BucketId),
    /// The vbuckets of a bucket have other owners or transfers.
    Assigned { bucket: BucketId, assignment: VbucketAssignment },
    /// The source of a bucket has begun new branches of history, and has lost nothing.
    HistoryAdopted { bucket: BucketId, logs: Arc<FailoverLogs> },
    /// A rollback begins, from these failover logs and this failover timestamp (the end of the
    /// surviving history) of the source. Each is `None` if it is not known yet.
    RollbackBegun { bucket: BucketId, logs: Option<Arc<FailoverLogs>>, failover: Option<Arc<Cut>> },
    /// A rollback reached its next stage, or ended (`None`). Some epochs may have become dead.
    RollbackChanged { bucket: BucketId, rollback: Option<Rollback>, dead: Option<DeadEpochs> },
    /// All further numbers are above this one (`--skip-epochs`).
    NumbersSkipped(u64),
    /// All partitions of a version are known. The only epoch of the version ends at these
    /// positions.
    VersionLoaded { bucket: BucketId, ends: Vec<(VbucketId, Position)> },
    /// The generations over bucket `to` replace those over bucket `from`.
    VersionSwitched { from: BucketId, to: BucketId },
    /// A generation begins. It replaces the generation `replaces`, whose build is then abandoned.
    GenerationBegun { info: IndexInfo, replaces: Option<LocalIndexId> },
    /// A slice of the serving generation of an index begins to move.
    MoveStarted { index: IndexId, started: SliceMove },
    /// A move reached its next stage, at an epoch of its bucket.
    MoveAdvanced { generation: LocalIndexId, id: MoveId, stage: MoveStage, epoch: Epoch },
    /// Moves of a generation ended. If they were undone, `undone` is the reason.
    MovesEnded { generation: LocalIndexId, ids: Vec<MoveId>, undone: Option<String> },
    /// A command about indexes ended moves.
    SliceMovesEnded(Vec<EndedMove>),
    /// A node can no longer be the target of moves, for the reason `why`.
    NoTarget { node: NodeId, why: &'static str },
    /// The slices of these generations have new placements.
    Placed(Vec<(LocalIndexId, Placement)>),
    /// Slices without a remaining copy were placed on other nodes, which have none of their data.
    LostPlaced(Vec<(LocalIndexId, Vec<SliceNo>, Placement)>),
    /// An indexer was removed. Its slices of these generations have new placements.
    IndexerRemoved { node: NodeId, placements: Vec<(LocalIndexId, Placement)> },
    /// The catalog changed; records that refer to dropped objects are removed.
    CatalogChanged,
    /// The users changed; `cas` is the number of the change.
    UsersChanged { cas: u64 },
    /// A projector was registered.
    ProjectorAdded(NodeId),
    /// A projector was removed.
    ProjectorRemoved(NodeId),
    /// The move of an embedded bucket to another projector is cancelled: the bucket stays.
    BucketStays(BucketId),
}
