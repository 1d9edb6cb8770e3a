//! Commands about buckets.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, Room};
use crate::model::bucket::SourceKind;
use crate::model::catalog::Catalog;
use crate::model::ids::BucketId;
use crate::model::users::Privilege;

/// CREATE BUCKET. The bucket begins with epoch 1, whose cut is the beginning of its history, so
/// that an empty bucket can be scanned. The coordinator gives the bucket to the projectors with the
/// fewest buckets. Refused with `Unavailable` while no projector is registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateBucket {
    /// The name of the bucket.
    pub name: String,
    /// The number of vbuckets of the bucket.
    pub vbuckets: u16,
    /// The kind of source that the bucket has.
    pub source: SourceKind,
    /// The number of projectors that share the bucket's vbuckets. More than one only for a pushed
    /// bucket, whose mutations are independent; an embedded bucket needs one process that numbers
    /// all its mutations, so that statements are atomic.
    pub projectors: u16,
    /// The number of copies; `None` means one. Refused for a pushed bucket, whose producer has the
    /// second copy.
    pub copies: Option<u8>,
    /// IF NOT EXISTS: true if an existing bucket of this name is no error.
    pub if_not_exists: bool,
}

impl CommandKind for CreateBucket {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::All(Privilege::Define)
    }

    fn creates(&self) -> bool {
        true
    }

    fn room(&self, catalog: &Catalog) -> Room {
        if self.if_not_exists && catalog.bucket(&self.name).is_some() {
            return Room::default();
        }
        Room { vbuckets: usize::from(self.vbuckets), ..Room::of_name(&self.name) }
    }
}

/// DROP BUCKET: removes a bucket with its documents and its indexes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropBucket {
    /// The bucket to drop.
    pub bucket: BucketId,
    /// RESTRICT: true if the command is refused while the bucket has indexes.
    pub restrict: bool,
}

impl CommandKind for DropBucket {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, self.bucket)
    }
}
