//! The true history of the bucket, for the judge: the logs of its source, including those of lost histories.

use std::sync::Arc;

use projector::testing::MemoryStore;
use projector::testing::Mutation;
use proto::model::cut::Position;
use proto::model::ids::{BucketId, VbucketId};

use super::producer::Producer;

/// The party that numbered the mutations.
#[derive(Clone)]
pub enum Truth {
    /// The projector of an embedded bucket numbered it.
    Embedded(Arc<MemoryStore>),
    /// The producer of a pushed one did.
    Pushed(Arc<Producer>),
}

impl Truth {
    /// The mutations of a vbucket up to a position, in the present or a lost history.
    pub fn log_at(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        match self {
            Self::Embedded(store) => store.log_at(bucket, vbucket, position),
            Self::Pushed(producer) => producer.log_at(vbucket, position),
        }
    }

    /// The same in the present history alone.
    pub fn present_log(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        match self {
            Self::Embedded(store) => store.present_log(bucket, vbucket, position),
            Self::Pushed(producer) => producer.present_log(vbucket, position),
        }
    }

    /// The number of losses of each vbucket that a later push may repair; such a place cannot be told from one that was
    /// never lost.
    pub fn losses(&self) -> Vec<u64> {
        match self {
            Self::Embedded(_) => Vec::new(),
            Self::Pushed(producer) => producer.losses(),
        }
    }

    /// True if a position lies at or before another one, in the history of the latter.
    pub fn is_before(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
        end: Position,
    ) -> bool {
        match self {
            Self::Embedded(store) => store.is_before(bucket, vbucket, position, end),
            Self::Pushed(producer) => producer.is_before(vbucket, position, end),
        }
    }
}
