//! The properties that each kind of command has: the privilege that it needs, the memory that it
//! takes in the replicated state, and its name in the audit.

use serde::Serialize;

use crate::model::catalog::Catalog;
use crate::model::ids::{BucketId, IndexId, NodeId};
use crate::model::index::IndexSpec;
use crate::model::node::Role;
use crate::model::users::Privilege;

/// The properties that every kind of command has, such as the privilege that it needs.
pub trait CommandKind {
    /// The class under which the audit records statements that propose this command. `None` for
    /// commands that only processes send.
    const AUDITED: Option<AuditClass>;

    /// Returns the privilege that the sender of the command needs.
    fn required_rights(&self) -> RequiredRights;

    /// Returns how much the command adds to the replicated state, computed from the sender's
    /// catalog.
    fn state_usage(&self, _catalog: &Catalog) -> StateUsage {
        StateUsage::default()
    }

    /// Returns true if the command creates an object with a random id: a bucket, an index, or a
    /// generation that a user requests.
    fn creates(&self) -> bool {
        false
    }

    /// Returns the kind of data that the command places on nodes; `None` if it places none.
    fn placed_kind(&self) -> Option<PlacedKind> {
        None
    }
}

/// The class of a command in the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditClass {
    /// A change of the definition of an index, bucket or data set.
    Definition,
    /// A move of slices or buckets, or a hand-over of vbuckets.
    Move,
    /// A change of the nodes.
    Node,
    /// A change of users or privileges.
    Users,
}

/// The privilege that the sender of a command needs, or the process that the sender must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequiredRights {
    /// This privilege on all buckets and the cluster.
    All(Privilege),
    /// This privilege on this bucket or data set.
    Bucket(Privilege, BucketId),
    /// This privilege on the buckets of these indexes.
    Indexes(Privilege, Vec<IndexId>),
    /// The sender must be the user with this name, or have [`Privilege::Admin`] on all buckets.
    Oneself(String),
    /// The sender must be as in [`Self::Oneself`], and must have proved the present password.
    /// Otherwise a client with only a token or certificate could set a password, which would stay
    /// valid when the token has expired.
    OwnPassword(String),
    /// The sender must be this process. Users may not send the command.
    Process(SendingProcess),
}

impl RequiredRights {
    /// Returns the need of a privilege on the bucket of an index.
    pub fn index(privilege: Privilege, index: IndexId) -> Self {
        Self::Indexes(privilege, vec![index])
    }
}

/// The processes that may send a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendingProcess {
    /// The node with this number; if a role is given, only in this role.
    Node(NodeId, Option<Role>),
    /// A projector or a coordinator.
    Projector,
    /// A member of the coordinator.
    Coordinator,
    /// The leading coordinator. Other processes cannot send the command.
    Leader,
}

/// The kind of data that a command places on nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedKind {
    /// Slices of indexes, on indexers.
    Slices,
    /// Partitions of data sets, on projectors.
    Partitions,
}

/// The amount that objects add to the replicated state, which is limited, by kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateUsage {
    /// The number of vbuckets of all buckets.
    pub vbuckets: usize,
    /// The number of data sets.
    pub data_sets: usize,
    /// The number of generations of indexes.
    pub indexes: usize,
    /// The number of copies of slices.
    pub places: usize,
    /// The size of the encoded definitions, in bytes.
    pub definition_bytes: usize,
}

impl StateUsage {
    /// The size limit of an encoded record, in bytes. For an index, the limit excludes its
    /// definition, its placement and its moves; for a bucket, its name and its vbuckets. The rest
    /// of a record are a few numbers.
    pub const RECORD_BYTES_MAX: usize = 128;

    /// Returns the size of the record of a bucket or a data set in the replicated state: its name
    /// and a fixed number of bytes. The caller adds the number of vbuckets.
    pub fn of_name(name: &str) -> Self {
        Self { definition_bytes: name.len() + Self::RECORD_BYTES_MAX, ..Self::default() }
    }

    /// Returns the size of one generation of an index in the replicated state.
    pub fn of_index(spec: &IndexSpec) -> Self {
        Self {
            indexes: 1,
            places: usize::from(spec.slices) * (usize::from(spec.replicas) + 1),
            definition_bytes: encoded_bytes(spec),
            ..Self::default()
        }
    }

    /// Returns the sum of two amounts.
    pub fn with(self, other: Self) -> Self {
        Self {
            vbuckets: self.vbuckets + other.vbuckets,
            data_sets: self.data_sets + other.data_sets,
            indexes: self.indexes + other.indexes,
            places: self.places + other.places,
            definition_bytes: self.definition_bytes + other.definition_bytes,
        }
    }
}

/// Returns the encoded size of a value in a snapshot of the replicated state, in bytes.
pub fn encoded_bytes(value: &impl Serialize) -> usize {
    // The size flavor stores nothing, so it cannot run out of room.
    postcard::serialize_with_flavor(value, postcard::ser_flavors::Size::default())
        .unwrap_or(usize::MAX / 2)
}
