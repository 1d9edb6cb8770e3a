//! Commands about data sets and their versions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kind::{
    AuditClass, CommandKind, PlacedKind, RequiredRights, SendingProcess, StateUsage,
};
use crate::error::Error;
use crate::model::catalog::Catalog;
use crate::model::data_set::{Files, FilesRead, PartitionContent};
use crate::model::ids::{BucketId, LocalIndexId, NodeId, VbucketId};
use crate::model::index::{IndexInfo, IndexState};
use crate::model::node::Role;
use crate::model::users::Privilege;

/// CREATE BUCKET … FROM FILES: creates a data set, which has no versions yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateDataSet {
    /// The name of the data set.
    pub name: String,
    /// The number of partitions of each version.
    pub partitions: u16,
    /// The number of holders of each partition.
    pub replication: u16,
    /// The time in ms for which an old version without readers is kept.
    pub idle_ms: u64,
    /// IF NOT EXISTS: true if an existing data set of this name is no error.
    pub if_not_exists: bool,
}

impl CommandKind for CreateDataSet {
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
        StateUsage { data_sets: 1, ..StateUsage::of_name(&self.name) }
    }
}

/// ALTER BUCKET … SET (version_idle = …): sets for how long an old version without readers is
/// kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetVersionIdle {
    /// The data set's bucket.
    pub bucket: BucketId,
    /// The time in ms.
    pub idle_ms: u64,
}

impl CommandKind for SetVersionIdle {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Define, self.bucket)
    }
}

/// ALTER BUCKET … LOAD VERSION: begins to load a version of a data set. Refused with `WrongState`
/// while another version is being loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadVersion {
    /// The data set's bucket.
    pub bucket: BucketId,
    /// The name of the version; must be new in the data set.
    pub version: String,
    /// The files of the version.
    pub files: Files,
    /// WITH (allow_empty): true if files without rows are no error.
    pub allow_empty: bool,
}

impl CommandKind for LoadVersion {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Define, self.bucket)
    }

    fn creates(&self) -> bool {
        true
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Partitions)
    }

    /// Returns the size of the version's bucket, and of one generation of each index that is not
    /// deferred.
    fn state_usage(&self, catalog: &Catalog) -> StateUsage {
        let set = catalog.data_sets.get(&self.bucket);
        let name = catalog.buckets.get(&self.bucket).map_or("", |bucket| &bucket.name);
        let current = catalog.current_bucket_of(self.bucket);
        let is_built = |index: &&Arc<IndexInfo>| index.state != IndexState::Pending;
        let own = catalog.indexes.values().filter(is_built);
        let own = own.filter(|index| index.bucket == current);
        let bucket = StateUsage {
            vbuckets: set.map_or(0, |set| usize::from(set.partitions)),
            definition_bytes: StateUsage::of_name(name).definition_bytes + self.version.len(),
            ..StateUsage::default()
        };
        own.fold(bucket, |room, index| room.with(StateUsage::of_index(&index.spec)))
    }
}

/// ALTER BUCKET … CANCEL VERSION: removes a version that is being loaded. Refused with `WrongState`
/// for any other version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelVersion {
    /// The data set's bucket.
    pub bucket: BucketId,
    /// The version's name.
    pub version: String,
}

impl CommandKind for CancelVersion {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Define, self.bucket)
    }
}

/// Reports that a projector has stored partitions of a version durably. Sent by this projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionsLoaded {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The projector.
    pub node: NodeId,
    /// The partitions with the summaries of their contents, ascending.
    pub partitions: Vec<(VbucketId, PartitionContent)>,
    /// The summary of all files that the projector has read. `None` if its process found the
    /// partitions complete when it began; other processes have then reported the files.
    pub read: Option<FilesRead>,
}

impl CommandKind for PartitionsLoaded {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Node(self.node, Some(Role::Projector)))
    }
}

/// Reports that a projector has lost partitions of a version. Sent by this projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionsLost {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The projector.
    pub node: NodeId,
    /// The partitions that were lost.
    pub partitions: Vec<VbucketId>,
}

impl CommandKind for PartitionsLost {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Node(self.node, Some(Role::Projector)))
    }
}

/// Reports that a projector cannot load a version, and ends the load. Sent by this projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionFailed {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The projector.
    pub node: NodeId,
    /// The reason, for users.
    pub error: Error,
}

impl CommandKind for VersionFailed {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Node(self.node, Some(Role::Projector)))
    }
}

/// Makes other holders the owners of partitions, because the present owners are silent. Sent by
/// the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePartitionOwners {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The partitions and their new owners.
    pub owners: Vec<(VbucketId, NodeId)>,
}

impl CommandKind for ChangePartitionOwners {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}

/// Begins to build a generation of an index over a version that is loaded completely. Sent by the
/// leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildVersion {
    /// The generation that serves now.
    pub from: LocalIndexId,
    /// The bucket of the version.
    pub bucket: BucketId,
}

impl CommandKind for BuildVersion {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// Makes the version that was loaded the current one, and lets its generations of the indexes
/// serve. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchVersion {
    /// The bucket of the data set.
    pub data_set: BucketId,
    /// The version's number.
    pub version: u64,
}

impl CommandKind for SwitchVersion {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}

/// Removes an old version that has no more readers. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropVersion {
    /// The bucket of the data set.
    pub data_set: BucketId,
    /// The version's number.
    pub version: u64,
}

impl CommandKind for DropVersion {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}
