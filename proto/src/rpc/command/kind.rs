//! The properties of a command apart from its fields: the privilege that it needs, the room that it takes, and its name
//! in the audit.

use serde::Serialize;

use crate::model::catalog::Catalog;
use crate::model::ids::{BucketId, IndexId, NodeId};
use crate::model::index::IndexSpec;
use crate::model::node::Role;
use crate::model::users::Privilege;

/// The facts of a kind of command.
pub trait CommandKind {
    /// The audit's name for statements that propose it; `None` for commands of processes.
    const AUDITED: Option<Audited>;

    /// The privilege that the sender of the command needs.
    fn need(&self) -> Need;

    /// The room that it takes in the replicated state, with the catalog that its sender has.
    fn room(&self, _catalog: &Catalog) -> Room {
        Room::default()
    }

    /// True if the command creates an object with a random id: a bucket, an index, or a generation that a user
    /// requests.
    fn creates(&self) -> bool {
        false
    }

    /// The kind of data that the command places on nodes; `None` if it places none.
    fn places(&self) -> Option<PlacedKind> {
        None
    }
}

/// The audit's name for a statement that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audited {
    /// A definition of an index, bucket or data set.
    Definition,
    /// A move of slices, vbuckets or buckets.
    Move,
    /// A change of the nodes.
    Node,
    /// A change of users or privileges.
    Users,
}

/// The privilege that the sender of a command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A privilege on all.
    All(Privilege),
    /// A privilege on a bucket or data set.
    Bucket(Privilege, BucketId),
    /// A privilege on the buckets of indexes.
    Indexes(Privilege, Vec<IndexId>),
    /// The user that a command changes is the sender, or the sender has [`Privilege::Admin`] on all.
    Oneself(String),
    /// As [`Self::Oneself`], and the sender has proved to know the present password: the holder of a token or a certificate must not make a
    /// secret of it that outlives it.
    OwnPassword(String),
    /// No user may send it: it is from a process of the cluster.
    Process(Process),
}

impl Need {
    /// A privilege on the bucket of an index.
    pub fn index(privilege: Privilege, index: IndexId) -> Self {
        Self::Indexes(privilege, vec![index])
    }
}

/// A process that sends a command about itself or its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// This node, and only in this role if a role is given.
    Node(NodeId, Option<Role>),
    /// A projector or a coordinator.
    Projector,
    /// A member of the coordinator.
    Coordinator,
    /// The leading coordinator itself: the command is never received from another process.
    Leader,
}

/// A kind of thing that a command gives to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedKind {
    /// Slices, to indexers.
    Slices,
    /// Partitions, to projectors.
    Partitions,
}

/// Room in the replicated state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Vbuckets, of all buckets.
    pub vbuckets: usize,
    /// The number of data sets.
    pub data_sets: usize,
    /// Generations of indexes.
    pub indexes: usize,
    /// Copies of slices.
    pub places: usize,
    /// Encoded definitions, in bytes.
    pub definition_bytes: usize,
}

impl Room {
    /// The encoded size limit of an index without its definition, its places and its moves, and of a bucket without its name and its
    /// vbuckets: a few numbers.
    pub const RECORD_BYTES_MAX: usize = 128;

    /// The room of a bucket or a data set besides its vbuckets.
    pub fn of_name(name: &str) -> Self {
        Self { definition_bytes: name.len() + Self::RECORD_BYTES_MAX, ..Self::default() }
    }

    /// The room of a generation of an index.
    pub fn of_index(spec: &IndexSpec) -> Self {
        Self {
            indexes: 1,
            places: usize::from(spec.slices) * (usize::from(spec.replicas) + 1),
            definition_bytes: encoded_bytes(spec),
            ..Self::default()
        }
    }

    /// The sum of two rooms.
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

/// The size of a value in a snapshot, in bytes.
pub fn encoded_bytes(value: &impl Serialize) -> usize {
    // The size flavor stores nothing, so it cannot run out of room.
    postcard::serialize_with_flavor(value, postcard::ser_flavors::Size::default())
        .unwrap_or(usize::MAX / 2)
}
