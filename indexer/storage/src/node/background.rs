//! Which work goes on in the background.

/// Which workers run.
#[derive(Default)]
pub struct Background {
    pub merging: bool,
    pub flushing: bool,
    pub compacting: bool,
    /// Why the last flush or compaction failed.
    pub trouble: Option<String>,
}
