//! The settings for moves of slices, and for slices that are lost.

/// Limits on concurrent moves, and timeouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveSettings {
    /// The limit of concurrent moves from one node.
    pub sources_max: usize,
    /// The limit of concurrent moves to one node.
    pub targets_max: usize,
    /// The limit of concurrent moves in the cluster.
    pub in_all_max: usize,
    /// The silence of a target, in ms, after which its move is undone.
    pub target_silent_ms: u64,
    /// The time without progress, in ms, after which a move is undone if its target reports an
    /// error.
    pub stuck_ms: u64,
    /// True if the source keeps its copy until no scan can read an epoch before the move. If
    /// false, the source drops its copy at once, which saves space; scans from before the move
    /// then continue at the target, after a short delay in which they find it.
    pub keep_sources: bool,
    /// The silence of a node, in ms, after which its copies count as lost and are rebuilt on other
    /// nodes.
    pub node_gone_ms: u64,
    /// The silence of all nodes of a slice, in ms, after which the slice counts as permanently lost
    /// and another node rebuilds it from the source; `None` waits for ever. The data of a node that
    /// returns later is discarded, so the limit is longer than the usual restart or repair of a
    /// machine. An index that is being built waits only for `target_silent_ms`, since such a node
    /// would restart its build anyway.
    pub lost_after_ms: Option<u64>,
}

impl Default for MoveSettings {
    fn default() -> Self {
        Self {
            sources_max: 2,
            targets_max: 2,
            in_all_max: 16,
            target_silent_ms: 60_000,
            stuck_ms: 60_000,
            keep_sources: true,
            node_gone_ms: 10 * 60_000,
            lost_after_ms: Some(60 * 60_000),
        }
    }
}
