//! The result of a command: its outcome and its effects.

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::BucketId;
use proto::rpc::command::Outcome;

/// A consequence of a command outside of the state.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The catalog changed.
    CatalogChanged,
    /// A stability timestamp was published.
    EpochPublished(EpochMark),
    /// A bucket was dropped.
    BucketDropped(BucketId),
    /// A bucket's source continues with new branches and has lost nothing.
    HistoryChanged(BucketId),
    /// Users or their privileges changed. Those of a catalog that goes with them, too, if that changed.
    UsersChanged,
}

/// The outcome and the effects of a command, or its refusal.
pub(super) type Change = Result<(Outcome, Vec<Effect>)>;

/// A command that changes nothing.
pub(super) fn nothing() -> Change {
    Ok((Outcome::Done, Vec::new()))
}

pub(super) fn catalog_changed() -> Change {
    Ok((Outcome::Done, vec![Effect::CatalogChanged]))
}
