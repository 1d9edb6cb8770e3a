//! Indexes, and what can be changed of them without a build.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, ObjectName, PlacedKind, Room};
use crate::model::catalog::Catalog;
use crate::model::ids::LocalIndexId;
use crate::model::index::IndexSpec;
use crate::model::users::Privilege;

/// CREATE INDEX. Slices are placed at once, by a pure planner over the registered indexers
/// (replicas on different nodes and zones); if there are too few, the error names the available ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateIndex {
    /// The definition.
    pub spec: IndexSpec,
    /// True to leave the index `pending`.
    pub defer_build: bool,
    /// Not an error if there is one of that name.
    pub if_not_exists: bool,
}

impl CommandKind for CreateIndex {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, ObjectName::new(&self.spec.bucket, false))
    }

    fn creates(&self) -> bool {
        true
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }

    fn room(&self, catalog: &Catalog) -> Room {
        match self.if_not_exists && catalog.index(&self.spec.name).is_some() {
            true => Room::default(),
            false => Room::of_index(&self.spec),
        }
    }
}

/// BUILD INDEX ON bucket (names): all or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildIndexes {
    /// The bucket's name.
    pub bucket: String,
    /// The indexes' names.
    pub names: Vec<String>,
}

impl CommandKind for BuildIndexes {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, ObjectName::new(&self.bucket, false))
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// DROP INDEX: removes all generations of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropIndex {
    /// The name of the index.
    pub name: String,
    /// True if its absence is no error.
    pub if_exists: bool,
}

impl CommandKind for DropIndex {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Index(Privilege::Define, ObjectName::new(&self.name, self.if_exists))
    }
}

/// ALTER INDEX … RENAME TO: nothing is built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenameIndex {
    /// The generation that must serve. Refused (`WrongState`) if another one serves by now.
    pub from: LocalIndexId,
    /// The definition of that generation.
    pub before: Box<IndexSpec>,
    /// The new name of the index.
    pub to: String,
    /// The statement that declares it under its new name, for SHOW INDEXES.
    pub sql: String,
}

impl CommandKind for RenameIndex {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Generation(Privilege::Define, self.from, None)
    }
}

/// ALTER INDEX … SET (replicas = n): the leader makes more copies, or gives some up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetReplicas {
    /// The index's name.
    pub index: String,
    /// Copies besides the first.
    pub replicas: u8,
}

impl CommandKind for SetReplicas {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Index(Privilege::Define, ObjectName::new(&self.index, false))
    }

    fn room(&self, catalog: &Catalog) -> Room {
        let Some(index) = catalog.index(&self.index) else { return Room::default() };
        let more = self.replicas.saturating_sub(index.spec.replicas);
        Room { places: usize::from(more) * usize::from(index.spec.slices), ..Room::default() }
    }
}

/// ALTER INDEX … SET (separate_included_columns = …): each node regroups its fragments, without copying.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSeparateIncludedColumns {
    /// The index's name.
    pub index: String,
    /// See `IndexSpec::separate_included_columns`.
    pub separate: bool,
}

impl CommandKind for SetSeparateIncludedColumns {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Index(Privilege::Define, ObjectName::new(&self.index, false))
    }
}

/// `ALTER INDEX … SET (slice_bytes_max = …)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSliceBytesMax {
    /// The index's name.
    pub index: String,
    /// The size of a slice from which on the index gets more slices, in bytes; 0 means never.
    pub bytes: u64,
}

impl CommandKind for SetSliceBytesMax {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Index(Privilege::Define, ObjectName::new(&self.index, false))
    }
}
