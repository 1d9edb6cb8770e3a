//! The properties of a command apart from its fields: the privilege that it needs, the room that it takes, and its name
//! in the audit.

use serde::Serialize;

use crate::model::catalog::Catalog;
use crate::model::ids::{BucketId, IndexId, NodeId};
use crate::model::index::IndexSpec;
use crate::model::node::Role;
use crate::model::users::Privilege;

/// The properties of a kind of command apart from its fields.
pub trait CommandKind {
    /// The name under which the audit records statements that propose this command; `None` for
    /// commands that only processes send.
    const AUDITED: Option<Audited>;

    /// The privilege that the sender of the command needs.
    fn need(&self) -> Need;

    /// The memory that the command takes in the replicated state, computed with the sender's
    /// catalog.
    fn room(&self, _catalog: &Catalog) -> Room {
        Room::default()
    }

    /// True if the command creates an object that gets a random id: a bucket, an index, or a
    /// generation that a user requests.
    fn creates(&self) -> bool {
        false
    }

    /// The kind of data that the command places on nodes; `None` if it places none.
    fn places(&self) -> Option<PlacedKind> {
        None
    }
}

/// The class of a command in the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audited {
    /// A change of the definition of an index, bucket or data set.
    Definition,
    /// A move of slices or buckets, or a hand-over of vbuckets.
    Move,
    /// A change of the nodes.
    Node,
    /// A change of users or privileges.
    Users,
}

/// The privilege that the sender of a command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// The privilege on everything.
    All(Privilege),
    /// The privilege on this bucket or data set.
    Bucket(Privilege, BucketId),
    /// The privilege on the buckets of these indexes.
    Indexes(Privilege, Vec<IndexId>),
    /// The sender must be the named user, or have [`Privilege::Admin`] on everything.
    Oneself(String),
    /// The sender must meet [`Self::Oneself`], and must have proved the present password. Otherwise
    /// the holder of a token or certificate could set a password that stays valid when the token
    /// has expired.
    OwnPassword(String),
    /// The sender must be this process of the cluster; users may not send the command.
    Process(Process),
}

impl Need {
    /// Returns the need for a privilege on the bucket of an index.
    pub fn index(privilege: Privilege, index: IndexId) -> Self {
        Self::Indexes(privilege, vec![index])
    }
}

/// The processes that may send a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// This node; if a role is given, only in this role.
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

/// The room that objects take in the replicated state, by kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The number of vbuckets, of all buckets.
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

impl Room {
    /// The size limit of an encoded record, in bytes: of an index without its definition, its
    /// places and its moves, and of a bucket without its name and its vbuckets. The rest are a few
    /// numbers.
    pub const RECORD_BYTES_MAX: usize = 128;

    /// Returns the room that the record of a bucket or a data set takes in the state: its name and a
    /// fixed number of bytes. The caller adds the vbuckets.
    pub fn of_name(name: &str) -> Self {
        Self { definition_bytes: name.len() + Self::RECORD_BYTES_MAX, ..Self::default() }
    }

    /// Returns the room of one generation of an index.
    pub fn of_index(spec: &IndexSpec) -> Self {
        Self {
            indexes: 1,
            places: usize::from(spec.slices) * (usize::from(spec.replicas) + 1),
            definition_bytes: encoded_bytes(spec),
            ..Self::default()
        }
    }

    /// Returns the sum of two rooms.
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

/// Returns the size of a value in a snapshot, in bytes.
pub fn encoded_bytes(value: &impl Serialize) -> usize {
    // The size flavor stores nothing, so it cannot run out of room.
    postcard::serialize_with_flavor(value, postcard::ser_flavors::Size::default())
        .unwrap_or(usize::MAX / 2)
}
