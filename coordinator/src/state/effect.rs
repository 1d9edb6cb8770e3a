//! How a command changes the state, and the result: its outcome and its effects.

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
    /// Users or their privileges changed. The effect of a catalog change, if there is one, is separate.
    UsersChanged,
}

/// The outcome and the effects of a command, or its refusal.
pub(super) type Change = Result<(Outcome, Vec<Effect>)>;

/// A command as it changes the state.
pub(super) trait Apply {
    /// Changes the state and returns an effect, or leaves the state as it was.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change;
}

/// A command that changes nothing.
pub(super) fn nothing() -> Change {
    Ok((Outcome::Done, Vec::new()))
}

pub(super) fn catalog_changed() -> Change {
    Ok((Outcome::Done, vec![Effect::CatalogChanged]))
}

/// The effects of a change of the catalog, if there is one.
pub(super) fn changed_if(changed: bool) -> Vec<Effect> {
    if changed { vec![Effect::CatalogChanged] } else { Vec::new() }
}
