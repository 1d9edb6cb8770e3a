//! The record of a bucket in the catalog: its kind of source, its vbuckets, and its rollbacks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::assignment::VbucketAssignment;
use crate::model::ids::{BucketId, Epoch, NodeId};
use crate::model::rollback::{DeadEpochs, Rollback};

/// Default number of vbuckets of a bucket.
pub const VBUCKETS_DEFAULT: u16 = 64;
/// Maximum number of vbuckets of a bucket. Every cut contains a position for each vbucket, so
/// cuts would be large with more.
pub const VBUCKETS_MAX: u16 = 1024;

/// The kind of a bucket's source; determines whether Sextant or a producer numbers the mutations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// Documents written through SQL or the ingest service; Sextant numbers the mutations.
    Embedded,
    /// Mutations pushed by a producer that numbers them itself.
    Push,
    /// Documents from files, loaded as complete versions ([`crate::model::data_set`]); a version is
    /// never changed.
    Files,
}

impl SourceKind {
    /// Returns the name of the kind in SHOW BUCKETS and in the administration service.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Push => "push",
            Self::Files => "files",
        }
    }

    /// Returns the description of the kind in sentences of messages.
    pub fn described(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Push => "pushed",
            Self::Files => "loaded from files",
        }
    }

    /// Returns true if the bucket's projector has the only copy of the mutations, so that a loss
    /// is final; a rollback after a loss then begins only when an operator has accepted it. False
    /// for a pushed bucket, whose producer has the data, and for a version, whose partitions have
    /// several holders.
    pub fn is_only_copy(self) -> bool {
        match self {
            Self::Embedded => true,
            Self::Push | Self::Files => false,
        }
    }

    /// Returns true if several projectors can own the vbuckets of one bucket. An embedded bucket
    /// has one projector, because a single writer numbers its mutations.
    pub fn can_span_projectors(self) -> bool {
        match self {
            Self::Embedded => false,
            Self::Push | Self::Files => true,
        }
    }

    /// Returns true if a vbucket can be handed over to another projector, after which the old
    /// projector removes it.
    pub fn can_hand_over(self) -> bool {
        match self {
            Self::Embedded | Self::Files => false,
            Self::Push => true,
        }
    }

    /// Returns true if the source reports its position to the coordinators, which compare its
    /// history with the published one. False for a version, whose only epoch the coordinators
    /// publish themselves.
    pub fn reports_position(self) -> bool {
        match self {
            Self::Embedded | Self::Push => true,
            Self::Files => false,
        }
    }
}

/// The record of a bucket in the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketInfo {
    /// The number of the bucket.
    pub id: BucketId,
    /// The name of the bucket, case-folded as in SQL.
    pub name: String,
    /// The number of vbuckets.
    pub vbuckets: u16,
    /// The kind of the bucket's source of mutations.
    pub source: SourceKind,
    /// The owners of the vbuckets: the projectors that store the documents and stream them.
    pub assignment: Arc<VbucketAssignment>,
    /// The rollback in progress, if any.
    pub rollback: Option<Arc<Rollback>>,
    /// Ranges of epochs that rollbacks have undone, oldest first. The number of ranges is
    /// bounded; the oldest are dropped.
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

    /// Returns true if a rollback has undone the epoch.
    pub fn is_dead(&self, epoch: Epoch) -> bool {
        self.dead.iter().any(|dead| dead.contains(epoch))
    }

    /// Returns the oldest epoch that a new scan may read. After a rollback this is the first
    /// epoch that contains all surviving mutations; `None` while that epoch is not known.
    pub fn readable_from(&self) -> Option<Epoch> {
        if self.rollback.as_ref().is_some_and(|rollback| rollback.resumes.is_none()) {
            return None;
        }
        Some(self.dead.last().map_or(Epoch(0), |dead| Epoch(dead.to.0 + 1)))
    }
}
