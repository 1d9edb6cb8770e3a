//! The trait by which commands change the state, and their results: outcomes and effects.

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::BucketId;
use proto::rpc::command::Outcome;

use super::context::StateContext;
use super::decisions::Decisions;

/// An effect of a command outside of the state, for example on watchers.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The catalog changed, so its watchers get the new one.
    CatalogChanged,
    /// An epoch was published, with this mark (stability timestamp).
    EpochPublished(EpochMark),
    /// A bucket was dropped.
    BucketDropped(BucketId),
    /// A bucket's source continues with new branches and has lost nothing.
    HistoryChanged(BucketId),
    /// Users or their privileges changed. If the catalog changed too, [`Effect::CatalogChanged`] is
    /// returned in addition.
    UsersChanged,
}

/// The result of a command: its outcome and its effects, or its refusal.
pub(super) type Change = Result<(Outcome, Vec<Effect>)>;

/// A command that can be applied to the state.
pub(super) trait Apply {
    /// Changes the state, and returns the outcome with the effects. A refusal leaves the state as
    /// it was.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change;
}

/// Returns the result of a command that changes nothing.
pub(super) fn nothing() -> Change {
    Ok((Outcome::Done, Vec::new()))
}

/// Returns the result of a command that has changed the catalog and has no other outcome.
pub(super) fn catalog_changed() -> Change {
    Ok((Outcome::Done, vec![Effect::CatalogChanged]))
}

/// Returns the effect of a changed catalog if `changed`, otherwise no effect.
pub(super) fn changed_if(changed: bool) -> Vec<Effect> {
    if changed { vec![Effect::CatalogChanged] } else { Vec::new() }
}
