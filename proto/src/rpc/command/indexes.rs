//! Commands about indexes: their creation and removal, and changes that need no new generation.

use serde::{Deserialize, Serialize};

use super::kind::{AuditClass, CommandKind, PlacedKind, RequiredRights, StateUsage};
use crate::model::catalog::Catalog;
use crate::model::ids::{BucketId, IndexId};
use crate::model::index::IndexSpec;
use crate::model::users::Privilege;

/// CREATE INDEX: creates an index, and assigns its slices to registered indexers, with replicas
/// on different nodes and zones. If there are too few indexers, the error names the available
/// ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateIndex {
    /// The bucket that the definition names.
    pub bucket: BucketId,
    /// The definition of the index.
    pub spec: IndexSpec,
    /// True if the index stays `pending` until BUILD INDEX.
    pub defer_build: bool,
    /// IF NOT EXISTS: true if an existing index of this name is no error.
    pub if_not_exists: bool,
}

impl CommandKind for CreateIndex {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Define, self.bucket)
    }

    fn creates(&self) -> bool {
        true
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }

    fn state_usage(&self, catalog: &Catalog) -> StateUsage {
        match self.if_not_exists && catalog.index(&self.spec.name).is_some() {
            true => StateUsage::default(),
            false => StateUsage::of_index(&self.spec),
        }
    }
}

/// BUILD INDEX ON bucket (names): begins to build all of these indexes. If one of them cannot be
/// built, builds none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildIndexes {
    /// The indexes to build.
    pub indexes: Vec<IndexId>,
}

impl CommandKind for BuildIndexes {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Indexes(Privilege::Define, self.indexes.clone())
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// DROP INDEX: removes all generations of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropIndex {
    /// The index to drop.
    pub index: IndexId,
}

impl CommandKind for DropIndex {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::index(Privilege::Define, self.index)
    }
}

/// ALTER INDEX … RENAME TO: changes an index's name without a build. The proposal expects the
/// definition that the statement renames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenameIndex {
    /// The index to rename.
    pub index: IndexId,
    /// The new name of the index.
    pub to: String,
    /// The CREATE INDEX statement with the new name, for SHOW INDEXES.
    pub sql: String,
}

impl CommandKind for RenameIndex {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::index(Privilege::Define, self.index)
    }
}

/// ALTER INDEX … SET (replicas = n): sets the number of replicas. The leader then adds or removes
/// copies of the slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetReplicas {
    /// The index to change.
    pub index: IndexId,
    /// The number of copies in addition to the first.
    pub replicas: u8,
}

impl CommandKind for SetReplicas {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::index(Privilege::Define, self.index)
    }

    fn state_usage(&self, catalog: &Catalog) -> StateUsage {
        let Some(index) = catalog.indexes.get(&self.index) else { return StateUsage::default() };
        let more = self.replicas.saturating_sub(index.spec.replicas);
        StateUsage {
            places: usize::from(more) * usize::from(index.spec.slices),
            ..StateUsage::default()
        }
    }
}

/// ALTER INDEX … SET (separate_included_columns = …): changes whether included values are in
/// separate fragments. Each node then regroups the index's fragments, without copying them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSeparateIncludedColumns {
    /// The index to change.
    pub index: IndexId,
    /// True to store the included values separately, as in
    /// `IndexSpec::separate_included_columns`.
    pub separate: bool,
}

impl CommandKind for SetSeparateIncludedColumns {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::index(Privilege::Define, self.index)
    }
}

/// `ALTER INDEX … SET (slice_bytes_max = …)`: sets the size limit of the index's slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSliceBytesMax {
    /// The index to change.
    pub index: IndexId,
    /// The size in bytes above which the slices of the index are split; 0 for no limit.
    pub bytes: u64,
}

impl CommandKind for SetSliceBytesMax {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::index(Privilege::Define, self.index)
    }
}
