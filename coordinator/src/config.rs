//! The settings of a member.

use std::path::PathBuf;

use proto::model::ids::NodeId;

use crate::leader::MoveSettings;
use crate::raft::RaftConfig;

/// The settings of a member.
#[derive(Clone, Debug)]
pub struct Config {
    /// This member.
    pub node: NodeId,
    /// All members and their addresses, this one too; the same list on all of them.
    pub members: Vec<(NodeId, String)>,
    /// Where its log is kept; nobody else uses the directory.
    pub dir: PathBuf,
    /// Stability timestamps come no closer together than this, unless somebody waits.
    pub tick_ms: u64,
    /// How slices are moved.
    pub moves: MoveSettings,
    /// Raft's own settings.
    pub raft: RaftConfig,
}

impl Config {
    /// The settings for a cluster in one data centre.
    pub fn new(node: NodeId, members: Vec<(NodeId, String)>, dir: PathBuf) -> Self {
        let raft = RaftConfig::new(node, members.iter().map(|(member, _)| *member).collect());
        Self { node, members, dir, tick_ms: 20, moves: MoveSettings::default(), raft }
    }
}
