//! The true history of the bucket, for the judge: the logs of its source, including those of lost histories.

use std::sync::Arc;

use projector::testing::Mutation;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, VbucketId};

use super::copied::Copied;
use super::statements::History;
use crate::sim::documents::Mirror;
use crate::sim::producer::Producer;

/// The logs of a vbucket from which a read may come.
pub struct Readable {
    /// The log; for a bucket with copies, every log from which an answer may come.
    pub logs: Vec<Vec<Arc<Mutation>>>,
    /// The number of mutations that every reader must see.
    pub from: usize,
    /// The number of lost histories.
    pub lost: u64,
}

/// The true history, by the process that numbers the mutations.
#[derive(Clone)]
pub enum Truth {
    /// The projector of an embedded bucket.
    Embedded(Mirror),
    /// The leading projector of an embedded bucket with copies.
    Copied(Arc<Copied>),
    /// The producer of a pushed bucket.
    Pushed(Arc<Producer>),
}

impl Truth {
    /// True if a projector numbers the mutations.
    pub fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded(_) | Self::Copied(_))
    }

    /// Returns the copies; `None` if the bucket has no copies.
    pub fn copied(&self) -> Option<&Arc<Copied>> {
        match self {
            Self::Copied(copied) => Some(copied),
            Self::Embedded(_) | Self::Pushed(_) => None,
        }
    }

    /// Returns the mutations of a vbucket up to a position, in the present or a lost history.
    pub fn log_at(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        match self {
            Self::Embedded(mirror) => mirror.log_at(bucket, vbucket, position),
            Self::Copied(copied) => copied.log_at(bucket, vbucket, position),
            Self::Pushed(producer) => producer.log_at(vbucket, position),
        }
    }

    /// Records a transaction of which this cut contains only a part, if that is known.
    pub fn note_split(&self, cut: &Cut) {
        match self {
            Self::Embedded(_) | Self::Copied(_) => {}
            Self::Pushed(producer) => producer.note_split(cut),
        }
    }

    /// Returns the mutations of a vbucket up to a position, in the present history only.
    pub fn present_log(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        match self {
            Self::Embedded(mirror) => mirror.present_log(bucket, vbucket, position),
            Self::Copied(copied) => copied.present_log(bucket, vbucket, position),
            Self::Pushed(producer) => producer.present_log(vbucket, position),
        }
    }

    /// Returns the histories of an embedded bucket, the present one first; `None` for a pushed
    /// bucket.
    pub fn histories(&self, bucket: BucketId) -> Option<Vec<History>> {
        match self {
            Self::Embedded(mirror) => Some(mirror.histories(bucket)),
            Self::Copied(copied) => Some(copied.histories(bucket)),
            Self::Pushed(_) => None,
        }
    }

    /// Returns the present log of a vbucket and the length that is already visible, which a read
    /// that begins now must see. `None` if the source may be in an earlier history.
    pub fn readable(&self, bucket: BucketId, vbucket: VbucketId) -> Option<Readable> {
        match self {
            Self::Embedded(mirror) => mirror.readable(bucket, vbucket),
            Self::Copied(copied) => copied.readable(bucket, vbucket),
            Self::Pushed(producer) => producer.readable(vbucket),
        }
    }

    /// Returns the number of losses of each vbucket. A later push may repair a loss, so that it can
    /// no longer be detected.
    pub fn losses(&self) -> Vec<u64> {
        match self {
            Self::Embedded(_) | Self::Copied(_) => Vec::new(),
            Self::Pushed(producer) => producer.losses(),
        }
    }

    /// True if a position is at or before `end` in the history that contains `end`.
    pub fn is_before(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
        end: Position,
    ) -> bool {
        match self {
            Self::Embedded(mirror) => mirror.is_before(bucket, vbucket, position, end),
            Self::Copied(copied) => copied.is_before(bucket, vbucket, position, end),
            Self::Pushed(producer) => producer.is_before(vbucket, position, end),
        }
    }
}
