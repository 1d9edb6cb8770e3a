//! The true history of the bucket, for the judge: the logs of its source, including those of lost histories.

use std::sync::Arc;

use projector::testing::Mutation;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, VbucketId};

use super::copied::Copied;
use super::statements::History;
use crate::sim::documents::Mirror;
use crate::sim::producer::Producer;

/// The logs that a read may show.
pub struct Readable {
    /// The log; of a bucket with copies each one that an answer may come from.
    pub logs: Vec<Vec<Arc<Mutation>>>,
    /// The number of mutations that every reader sees.
    pub from: usize,
    /// The number of lost histories.
    pub lost: u64,
}

/// The party that numbered the mutations.
#[derive(Clone)]
pub enum Truth {
    /// The projector of an embedded bucket numbered it.
    Embedded(Mirror),
    /// The leading one of several projectors did.
    Copied(Arc<Copied>),
    /// The producer of a pushed bucket numbered the mutations.
    Pushed(Arc<Producer>),
}

impl Truth {
    /// True if a projector numbers the mutations.
    pub fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded(_) | Self::Copied(_))
    }

    /// The copies, if the bucket has several.
    pub fn copied(&self) -> Option<&Arc<Copied>> {
        match self {
            Self::Copied(copied) => Some(copied),
            Self::Embedded(_) | Self::Pushed(_) => None,
        }
    }

    /// The mutations of a vbucket up to a position, in the present or a lost history.
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

    /// Notes a transaction of which an epoch with this cut has a part, if that is known.
    pub fn note_split(&self, cut: &Cut) {
        match self {
            Self::Embedded(_) | Self::Copied(_) => {}
            Self::Pushed(producer) => producer.note_split(cut),
        }
    }

    /// The log of a vbucket in the present history alone.
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

    /// The histories of an embedded bucket, the present one first.
    pub fn histories(&self, bucket: BucketId) -> Option<Vec<History>> {
        match self {
            Self::Embedded(mirror) => Some(mirror.histories(bucket)),
            Self::Copied(copied) => Some(copied.histories(bucket)),
            Self::Pushed(_) => None,
        }
    }

    /// The present log of a vbucket, and the part of it that was already visible: a read that begins now reads at least that part. `None`
    /// if the source may be in an earlier history.
    pub fn readable(&self, bucket: BucketId, vbucket: VbucketId) -> Option<Readable> {
        match self {
            Self::Embedded(mirror) => mirror.readable(bucket, vbucket),
            Self::Copied(copied) => copied.readable(bucket, vbucket),
            Self::Pushed(producer) => producer.readable(vbucket),
        }
    }

    /// The number of losses of each vbucket that a later push may repair; such a place cannot be distinguished from one
    /// that was never lost.
    pub fn losses(&self) -> Vec<u64> {
        match self {
            Self::Embedded(_) | Self::Copied(_) => Vec::new(),
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
            Self::Embedded(mirror) => mirror.is_before(bucket, vbucket, position, end),
            Self::Copied(copied) => copied.is_before(bucket, vbucket, position, end),
            Self::Pushed(producer) => producer.is_before(vbucket, position, end),
        }
    }
}
