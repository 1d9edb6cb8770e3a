//! The leader's decisions about a proposal. The log stores them with the proposal, so that all
//! members apply equal values. No client can send them.

use proto::model::identity::{NodeProof, UniqueId};
use proto::model::ids::NodeId;
use proto::model::rollback::NewestNumbers;
use serde::{Deserialize, Serialize};

/// Values that the leader adds to a proposal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decisions {
    /// The time of the proposal, in Unix milliseconds: the state has no clock.
    pub unix_ms: u64,
    /// The random id of what the command creates; zero for other commands ([`Command::creates`](proto::rpc::command::Command::creates)).
    pub unique: UniqueId,
    /// The nodes that have been silent for some seconds, ascending. They are indexers if the
    /// command places slices, and projectors if it gives partitions of a version to load
    /// ([`Command::places`](proto::rpc::command::Command::places)). Silent nodes get slices or
    /// partitions only if there are too few others.
    pub silent: Vec<NodeId>,
    /// The newest numbers that processes have reported, for [`SkipEpochs`](proto::rpc::command::SkipEpochs).
    pub newest: NewestNumbers,
    /// For [`Join`](proto::rpc::command::Join): the proof of the silent process that has the node
    /// id now and is replaced.
    pub replaces: Option<NodeProof>,
}

impl Decisions {
    /// Creates decisions that contain only the time.
    #[cfg(any(test, feature = "testing"))]
    pub fn at(unix_ms: u64) -> Self {
        Self { unix_ms, ..Self::default() }
    }
}
