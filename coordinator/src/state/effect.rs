//! What applying a command comes to.

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::BucketId;
use proto::rpc::command::Outcome;

/// What follows from an applied command.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The catalog is another one now.
    CatalogChanged,
    /// A stability timestamp was published.
    EpochPublished(EpochMark),
    /// A bucket is gone.
    BucketDropped(BucketId),
    /// A bucket's source goes on with new branches and has lost nothing.
    HistoryChanged(BucketId),
}

/// A change: its outcome and what follows; or a refusal.
pub(super) type Change = Result<(Outcome, Vec<Effect>)>;

/// Nothing happens.
pub(super) fn nothing() -> Change {
    Ok((Outcome::Done, Vec::new()))
}

pub(super) fn catalog_changed() -> Change {
    Ok((Outcome::Done, vec![Effect::CatalogChanged]))
}
