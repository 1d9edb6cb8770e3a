//! Commands about generations of an index. A new generation is built while the old one serves.

use serde::{Deserialize, Serialize};

use super::kind::{
    AuditClass, CommandKind, PlacedKind, RequiredRights, SendingProcess, StateUsage,
};
use crate::model::catalog::Catalog;
use crate::model::ids::{Generation, IndexId, LocalIndexId, SliceNo};
use crate::model::index::IndexSpec;
use crate::model::users::Privilege;

/// ALTER INDEX or REINDEX: begins to build a new generation of an index, with a new definition or
/// the present one. The present generation serves until [`IndexReady`]. Refused with `WrongState`
/// while another generation is being built. The proposal expects the definition from which the
/// new one was derived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildGeneration {
    /// The index to build.
    pub index: IndexId,
    /// The definition to build, of the same name and bucket as the present one.
    pub spec: Box<IndexSpec>,
}

impl CommandKind for BuildGeneration {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::index(Privilege::Define, self.index)
    }

    fn creates(&self) -> bool {
        true
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }

    fn state_usage(&self, _catalog: &Catalog) -> StateUsage {
        StateUsage::of_index(&self.spec)
    }
}

/// Reports that all slices of a generation are built, whose state then changes from `backfill` to
/// `maintenance`. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexReady {
    /// The index that was built.
    pub index: IndexId,
    /// The generation that is ready.
    pub generation: Generation,
}

impl CommandKind for IndexReady {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}

/// CANCEL BUILD: removes a generation that is being built, and with it the index if it has no
/// other generation. Refused with `WrongState` if nothing is being built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelBuild {
    /// The index whose build is cancelled.
    pub index: IndexId,
}

impl CommandKind for CancelBuild {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::index(Privilege::Define, self.index)
    }
}

/// Removes a retired generation that has no more readers. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropGeneration {
    /// The generation to remove.
    pub generation: LocalIndexId,
}

impl CommandKind for DropGeneration {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}

/// Begins to build a generation with more slices, because the slices of an index have reached their
/// size limit. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowIndex {
    /// The serving generation. If another one serves by then, the command has no effect.
    pub from: LocalIndexId,
    /// The new number of slices.
    pub slices: u16,
}

impl CommandKind for GrowIndex {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// Begins to build a generation in which one slice of a range-partitioned index is split, because
/// the slice has reached its size limit. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitSlice {
    /// The serving generation. If another one serves by then, the command has no effect.
    pub from: LocalIndexId,
    /// The slice to split.
    pub slice: SliceNo,
    /// The split point, as an encoded key part.
    pub at: Vec<u8>,
}

impl CommandKind for SplitSlice {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}
