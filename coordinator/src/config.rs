//! The settings of a member.

use std::path::PathBuf;

use proto::model::ids::NodeId;

use crate::leader::MoveSettings;
use crate::raft::RaftConfig;

/// The settings of a member.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node id of this member.
    pub node: NodeId,
    /// The ids and addresses of the members, for the first start. If the list contains this
    /// member, its members form a new cluster. If not, this member waits until an existing
    /// cluster adds it. A member with a log takes the members from the log instead.
    pub members: Vec<(NodeId, String)>,
    /// The directory of this member's log. No other process may use it.
    pub dir: PathBuf,
    /// The shortest interval between two epochs, in ms. A caller that waits for an epoch gets one
    /// sooner.
    pub tick_ms: u64,
    /// True if the operator asked for a new cluster, although the directory belongs to a cluster whose log is lost.
    pub force_new_cluster: bool,
    /// True if the operator asked to skip numbers, because the directory was restored from an
    /// older copy: new epochs, catalogs and ids then begin above all numbers that nodes report.
    pub skip_epochs: bool,
    /// The settings of moves.
    pub moves: MoveSettings,
    /// The settings of the replicated log.
    pub raft: RaftConfig,
}

impl Config {
    /// The settings for a cluster in one data centre.
    pub fn new(node: NodeId, members: Vec<(NodeId, String)>, dir: PathBuf) -> Self {
        let named = members.iter().map(|(member, _)| *member);
        let founds = members.iter().any(|(member, _)| *member == node);
        let raft = RaftConfig::new(node, named.filter(|_| founds).collect());
        Self {
            node,
            members,
            dir,
            tick_ms: 20,
            force_new_cluster: false,
            skip_epochs: false,
            moves: MoveSettings::default(),
            raft,
        }
    }
}
