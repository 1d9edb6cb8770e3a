//! The words for states that users see.

use proto::model::index::IndexState;

/// The state of an index as users see it. The replicated state `maintenance` is shown as `online`: the index serves scans.
pub(crate) fn index_state(state: IndexState) -> &'static str {
    match state {
        IndexState::Maintenance => "online",
        other => other.name(),
    }
}
