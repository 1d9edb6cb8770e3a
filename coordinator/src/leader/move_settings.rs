//! How slices are moved.

/// How many moves at a time, and how much patience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveSettings {
    /// Moves that a node is the source of at a time.
    pub sources_max: usize,
    /// Moves that a node is the target of at a time.
    pub targets_max: usize,
    /// Moves at a time in the cluster.
    pub in_all_max: usize,
    /// A target that is silent for longer is given up.
    pub target_silent_ms: u64,
    /// A target that has trouble and comes no further for longer is given up.
    pub stuck_ms: u64,
    /// Is the source's copy kept until no scan can ask for an epoch from before? If not, such scans go on at
    /// the target, which can answer them just as well, but for the time that it takes to find that out.
    pub keep_sources: bool,
    /// The copies of a node that is silent for longer count as lost, and are made elsewhere.
    pub node_gone_ms: u64,
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
        }
    }
}
