//! Buckets: their kind of source, their vbuckets, and the losses of history they have come through.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::assignment::VbucketAssignment;
use crate::model::ids::{BucketId, Epoch, NodeId};
use crate::model::rollback::{DeadEpochs, Rollback};

/// Default number of vbuckets of a bucket.
pub const VBUCKETS_DEFAULT: u16 = 64;
/// Maximum number of vbuckets of a bucket: every cut carries a position for each of them.
pub const VBUCKETS_MAX: u16 = 1024;

/// The kind of a bucket's source, which determines what numbers its mutations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// Documents written through SQL or the ingest service; Sextant numbers the mutations.
    Embedded,
    /// Mutations pushed by a producer that numbers them itself.
    Push,
    /// Documents from files, a whole version at a time ([`crate::model::data_set`]); nothing changes them.
    Files,
}

impl SourceKind {
    /// The name of the kind in SHOW BUCKETS and in the administration service.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Push => "push",
            Self::Files => "files",
        }
    }

    /// The kind in a sentence.
    pub fn described(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Push => "pushed",
            Self::Files => "loaded from files",
        }
    }

    /// True if mutations that the source's projector loses exist nowhere else. Such a loss causes no rollback before an operator has
    /// accepted it. A pushed bucket's producer has its data, and the partitions of a version have several holders.
    pub fn is_only_copy(self) -> bool {
        match self {
            Self::Embedded => true,
            Self::Push | Self::Files => false,
        }
    }

    /// True if several projectors can own the vbuckets of one bucket. An embedded bucket has one projector, because a single writer
    /// numbers its mutations.
    pub fn can_span_projectors(self) -> bool {
        match self {
            Self::Embedded => false,
            Self::Push | Self::Files => true,
        }
    }

    /// True if a vbucket can be handed over to another projector, and is then removed from its old projector.
    pub fn can_hand_over(self) -> bool {
        match self {
            Self::Embedded | Self::Files => false,
            Self::Push => true,
        }
    }

    /// True if the source reports its position to the coordinators, and they compare its history. The coordinators themselves publish the
    /// only epoch of a version.
    pub fn reports(self) -> bool {
        match self {
            Self::Embedded | Self::Push => true,
            Self::Files => false,
        }
    }
}

/// A bucket, as the catalog describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketInfo {
    /// The number of the bucket.
    pub id: BucketId,
    /// The name of the bucket, folded as in SQL.
    pub name: String,
    /// The number of change streams.
    pub vbuckets: u16,
    /// The kind of its source.
    pub source: SourceKind,
    /// The projectors that keep its documents and stream them.
    pub assignment: Arc<VbucketAssignment>,
    /// The rollback in progress, if any.
    pub rollback: Option<Arc<Rollback>>,
    /// Ranges of epochs that rollbacks have undone, oldest first; a bounded number of ranges.
    pub dead: Arc<Vec<DeadEpochs>>,
}

impl BucketInfo {
    /// Creates a bucket whose vbuckets are all at one projector.
    pub fn new(
        id: BucketId,
        name: impl Into<String>,
        vbuckets: u16,
        source: SourceKind,
        projector: NodeId,
    ) -> Self {
        let name = name.into();
        let assignment = Arc::new(VbucketAssignment::single(vbuckets, projector));
        Self { id, name, vbuckets, source, assignment, rollback: None, dead: Arc::default() }
    }

    /// Returns the bucket with another assignment of its vbuckets.
    pub fn with_assignment(mut self, assignment: VbucketAssignment) -> Self {
        self.assignment = Arc::new(assignment);
        self
    }

    /// True if a rollback has undone the epoch.
    pub fn is_dead(&self, epoch: Epoch) -> bool {
        self.dead.iter().any(|dead| dead.contains(epoch))
    }

    /// The oldest epoch that a new scan may read: an older one may lack mutations that survived a rollback. `None`
    /// while a rollback has not determined it yet.
    pub fn readable_from(&self) -> Option<Epoch> {
        if self.rollback.as_ref().is_some_and(|rollback| rollback.resumes.is_none()) {
            return None;
        }
        Some(self.dead.last().map_or(Epoch(0), |dead| Epoch(dead.to.0 + 1)))
    }
}
