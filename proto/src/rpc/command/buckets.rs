//! Buckets.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, Room};
use crate::model::bucket::SourceKind;
use crate::model::catalog::Catalog;
use crate::model::ids::BucketId;
use crate::model::users::Privilege;

/// CREATE BUCKET. The new bucket has epoch 1 from the start, with a cut at the beginning of its
/// history, so that an empty bucket can be scanned. Refused (`Unavailable`) while no projector
/// is registered; the projectors with the fewest buckets get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateBucket {
    /// The name of the bucket.
    pub name: String,
    /// The number of its vbuckets.
    pub vbuckets: u16,
    /// The kind of its source.
    pub source: SourceKind,
    /// The number of projectors that share its vbuckets. Only a pushed bucket may have several, since its mutations are
    /// independent; the statements of an embedded bucket are atomic because one process numbers them.
    pub projectors: u16,
    /// The number of copies; `None` if the statement names none; the bucket then has one. Refused for a pushed bucket, whose producer has
    /// the other copy.
    pub copies: Option<u8>,
    /// Not an error if there is one of that name.
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

/// DROP BUCKET, with its indexes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropBucket {
    /// The bucket to drop.
    pub bucket: BucketId,
    /// RESTRICT: refused while the bucket has indexes.
    pub restrict: bool,
}

impl CommandKind for DropBucket {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, self.bucket)
    }
}
