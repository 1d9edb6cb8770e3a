//! The trait by which commands change the state, and its results: outcomes and effects.

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::BucketId;
use proto::rpc::command::Outcome;

use super::context::StateContext;
use super::decisions::Decisions;

/// A consequence of a command outside of the state.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The catalog changed, so its watchers get the new one.
    CatalogChanged,
    /// A stability timestamp was published.
    EpochPublished(EpochMark),
    /// A bucket was dropped.
    BucketDropped(BucketId),
    /// A bucket's source continues with new branches and has lost nothing.
    HistoryChanged(BucketId),
    /// Users or their privileges changed. If the catalog changed too, [`Effect::CatalogChanged`] is
    /// returned in addition.
    UsersChanged,
}

/// The outcome and the effects of a command, or its refusal.
pub(super) type Change = Result<(Outcome, Vec<Effect>)>;

/// A command that can be applied to the state.
pub(super) trait Apply {
    /// Changes the state and returns the outcome with the effects, or leaves the state as it was
    /// and returns a refusal.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change;
}

/// Returns the result of a command that changes nothing.
pub(super) fn nothing() -> Change {
    Ok((Outcome::Done, Vec::new()))
}

pub(super) fn catalog_changed() -> Change {
    Ok((Outcome::Done, vec![Effect::CatalogChanged]))
}

/// Returns the effects of a command that has changed the catalog if `changed`.
pub(super) fn changed_if(changed: bool) -> Vec<Effect> {
    if changed { vec![Effect::CatalogChanged] } else { Vec::new() }
}
