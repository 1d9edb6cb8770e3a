//! The consequences of a command for other families than its own: plain values, which `carry_out` gives to
//! all families.

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

/// A consequence of a command for another family. Each sub-state takes its part of it by its method `on`.
#[derive(Clone, Debug)]
pub(super) enum Consequence {
    /// A bucket was made, with a random id, and with the number of copies that it should have.
    BucketMade { info: Arc<BucketInfo>, unique: UniqueId, copies: Option<u8> },
    /// A bucket was dropped, with its indexes and with the generations of other indexes over it.
    BucketDropped(BucketId),
    /// The vbuckets of a bucket have other owners or transfers.
    Assigned { bucket: BucketId, assignment: VbucketAssignment },
    /// A bucket continues with other branches of history, and has lost nothing.
    HistoryAdopted { bucket: BucketId, logs: Arc<FailoverLogs> },
    /// A rollback begins, to what a source still has, as far as that is known.
    RollbackBegun { bucket: BucketId, logs: Option<Arc<FailoverLogs>>, failover: Option<Arc<Cut>> },
    /// A rollback reached its next stage, where these epochs became dead, or ended.
    RollbackChanged { bucket: BucketId, rollback: Option<Rollback>, dead: Option<DeadEpochs> },
    /// All numbers continue above this one (`--skip-epochs`).
    NumbersSkipped(u64),
    /// All partitions of a version are known: its only epoch ends there.
    VersionLoaded { bucket: BucketId, ends: Vec<(VbucketId, Position)> },
    /// The generations over one bucket replace those over another.
    VersionSwitched { from: BucketId, to: BucketId },
    /// A generation begins, and replaces one that is being built.
    GenerationBegun { info: IndexInfo, replaces: Option<LocalIndexId> },
    /// A slice of the serving generation of an index begins to move.
    MoveStarted { index: IndexId, started: SliceMove },
    /// A move reached its next stage, at an epoch of its bucket.
    MoveAdvanced { generation: LocalIndexId, id: MoveId, stage: MoveStage, epoch: Epoch },
    /// Moves ended, undone for a reason if there is one.
    MovesEnded { generation: LocalIndexId, ids: Vec<MoveId>, undone: Option<String> },
    /// A command about indexes ended moves.
    SliceMovesEnded(Vec<EndedMove>),
    /// Slices move no more to a node.
    NoTarget { node: NodeId, why: &'static str },
    /// The slices of generations have other nodes.
    Placed(Vec<(LocalIndexId, Placement)>),
    /// Slices without a copy that is left have other nodes, which have nothing of them.
    LostPlaced(Vec<(LocalIndexId, Vec<SliceNo>, Placement)>),
    /// An indexer left; these generations have other nodes for its slices.
    IndexerRemoved { node: NodeId, placements: Vec<(LocalIndexId, Placement)> },
    /// The catalog changed: what it makes superfluous is forgotten.
    CatalogChanged,
    /// The users changed with the change of this number.
    UsersChanged { cas: u64 },
    /// A projector was registered.
    ProjectorAdded(NodeId),
    /// A projector left.
    ProjectorRemoved(NodeId),
    /// An embedded bucket moves no more.
    BucketStays(BucketId),
}
