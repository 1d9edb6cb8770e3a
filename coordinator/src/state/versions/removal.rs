//! Removes a version, with the generations of indexes over it and its bucket.

use proto::model::ids::BucketId;
use proto::rpc::command::Outcome;

use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::effect::{Change, Effect, nothing};

/// Removes a version of a data set; does nothing if it does not exist.
pub(super) fn remove_version(state: &mut StateContext, id: BucketId, number: u64) -> Change {
    let set = state.versions.get_mut(id);
    let Some(version) = set.and_then(|set| set.versions.remove(&number)) else {
        return nothing();
    };
    let mut effects = vec![Effect::CatalogChanged];
    effects.extend(state.carry_out(&Consequence::BucketDropped(version.bucket)));
    Ok((Outcome::Done, effects))
}
