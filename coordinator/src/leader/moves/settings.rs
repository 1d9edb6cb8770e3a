//! The settings for moves of slices, and for slices that are lost.

/// Limits on concurrent moves, and timeouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveSettings {
    /// Moves from one node at a time.
    pub sources_max: usize,
    /// Moves to one node at a time.
    pub targets_max: usize,
    /// Moves in the cluster at a time.
    pub in_all_max: usize,
    /// A move is undone when its target is silent for longer than this.
    pub target_silent_ms: u64,
    /// A move is undone when its target reports trouble and makes no progress for longer than this.
    pub stuck_ms: u64,
    /// True keeps the source's copy until no scan can read an epoch before the move. False saves the space: such
    /// scans continue at the target, after a short delay in which they find it.
    pub keep_sources: bool,
    /// The copies of a node that is silent for longer than this count as lost and are made elsewhere.
    pub node_gone_ms: u64,
    /// A slice whose nodes are all silent for longer than this counts as lost for good, and another node rebuilds it from the
    /// source; `None` waits for ever. The data of a node that returns later is discarded, so the limit is longer than the usual restart or
    /// repair of a machine. An index that is being built waits only for `target_silent_ms`, since such a node would restart its build
    /// anyway.
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
