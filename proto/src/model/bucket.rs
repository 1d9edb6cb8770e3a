//! Buckets: their kind of source, their vbuckets, and the losses of history they have come through.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::homes::Homes;
use crate::model::ids::{BucketId, Epoch, NodeId};
use crate::model::rollback::{DeadEpochs, Rollback};

/// Vbuckets of a bucket that does not say how many it wants.
pub const VBUCKETS_DEFAULT: u16 = 64;
/// Most vbuckets of a bucket: every cut carries a position for each.
pub const VBUCKETS_MAX: u16 = 1024;

/// Who writes a bucket; a bucket has one kind of writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// Documents written through SQL or the ingest service; Sextant numbers the mutations.
    Embedded,
    /// Mutations pushed by a producer that numbers them itself.
    Push,
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketInfo {
    /// Its number.
    pub id: BucketId,
    /// Its name, folded as SQL folds it.
    pub name: String,
    /// How many change streams it has.
    pub vbuckets: u16,
    /// Who writes it.
    pub source: SourceKind,
    /// The projectors that keep its documents and stream them.
    pub homes: Arc<Homes>,
    /// The rollback that is under way.
    pub rollback: Option<Arc<Rollback>>,
    /// Epochs that rollbacks have taken back, the newest range last; a bounded number of ranges.
    pub dead: Arc<Vec<DeadEpochs>>,
}

impl BucketInfo {
    /// A new bucket, at one projector.
    pub fn new(
        id: BucketId,
        name: impl Into<String>,
        vbuckets: u16,
        source: SourceKind,
        projector: NodeId,
    ) -> Self {
        let name = name.into();
        let homes = Arc::new(Homes::one(vbuckets, projector));
        Self { id, name, vbuckets, source, homes, rollback: None, dead: Arc::default() }
    }

    /// The same bucket with other homes.
    pub fn with_homes(mut self, homes: Homes) -> Self {
        self.homes = Arc::new(homes);
        self
    }

    /// Was an epoch taken back by a rollback?
    pub fn is_dead(&self, epoch: Epoch) -> bool {
        self.dead.iter().any(|dead| dead.contains(epoch))
    }

    /// Nothing below this epoch is chosen for a new scan: it may lack what has survived a rollback. `None`
    /// while that is not known yet.
    pub fn readable_from(&self) -> Option<Epoch> {
        if self.rollback.as_ref().is_some_and(|rollback| rollback.resumes.is_none()) {
            return None;
        }
        Some(self.dead.last().map_or(Epoch(0), |dead| Epoch(dead.to.0 + 1)))
    }
}
