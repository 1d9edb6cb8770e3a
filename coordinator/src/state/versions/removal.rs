//! The removal of a version, with the generations of indexes over it and its bucket.

use proto::model::ids::BucketId;
use proto::rpc::command::Outcome;

use crate::state::context::StateContext;
use crate::state::effect::{Change, Effect, nothing};

impl StateContext {
    pub(in crate::state) fn remove_version(&mut self, id: BucketId, number: u64) -> Change {
        let set = self.data_sets.get_mut(&id);
        let Some(version) = set.and_then(|set| set.versions.remove(&number)) else {
            return nothing();
        };
        self.remove_generations_over(version.bucket);
        let gone = self.remove_bucket(version.bucket);
        Ok((Outcome::Done, vec![Effect::CatalogChanged, gone]))
    }
}
