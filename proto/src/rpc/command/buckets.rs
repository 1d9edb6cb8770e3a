//! Commands about buckets.

use serde::{Deserialize, Serialize};

use super::kind::{AuditClass, CommandKind, RequiredRights, StateUsage};
use crate::model::bucket::SourceKind;
use crate::model::catalog::Catalog;
use crate::model::ids::BucketId;
use crate::model::users::Privilege;

/// CREATE BUCKET: creates a bucket, with epoch 1, whose cut is the beginning of its history, so
/// that an empty bucket can be scanned. The coordinator assigns the bucket to the projectors with
/// the fewest buckets. Refused with `Unavailable` while no projector is registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateBucket {
    /// The name of the bucket.
    pub name: String,
    /// The number of vbuckets of the bucket.
    pub vbuckets: u16,
    /// The kind of the bucket's source.
    pub source: SourceKind,
    /// The number of projectors that share the bucket's vbuckets. Only a pushed bucket, whose
    /// mutations are independent, may have more than one. In an embedded bucket one process
    /// numbers all mutations, so that statements are atomic.
    pub projectors: u16,
    /// The number of copies; `None` means one. Refused for a pushed bucket, because its producer
    /// has the data too.
    pub copies: Option<u8>,
    /// IF NOT EXISTS: true if an existing bucket of this name is no error.
    pub if_not_exists: bool,
}

impl CommandKind for CreateBucket {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::All(Privilege::Define)
    }

    fn creates(&self) -> bool {
        true
    }

    fn state_usage(&self, catalog: &Catalog) -> StateUsage {
        if self.if_not_exists && catalog.bucket(&self.name).is_some() {
            return StateUsage::default();
        }
        StateUsage { vbuckets: usize::from(self.vbuckets), ..StateUsage::of_name(&self.name) }
    }
}

/// DROP BUCKET: removes a bucket with its documents and its indexes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropBucket {
    /// The bucket to drop.
    pub bucket: BucketId,
    /// RESTRICT: true to refuse the command while the bucket has indexes.
    pub restrict: bool,
}

impl CommandKind for DropBucket {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Define, self.bucket)
    }
}
