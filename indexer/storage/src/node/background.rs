//! Workers in the background.

/// The running background workers, at most one of each kind.
#[derive(Default)]
pub struct Background {
    pub is_merging: bool,
    pub is_flushing: bool,
    pub is_compacting: bool,
    /// Error of the last flush or compaction.
    pub trouble: Option<String>,
}
