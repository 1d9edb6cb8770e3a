//! The capacities of the state, so that a snapshot fits in one message between members: for each
//! kind of record the limit, the bytes of a record in a snapshot, and the refusal beyond the limit.

use proto::model::data_set::{PATTERN_BYTES_MAX, VERSION_NAME_BYTES_MAX};
use proto::model::history::BRANCHES_MAX;
use proto::model::rollback::DEAD_MAX;
use proto::model::users::USER_NAME_BYTES_MAX;
use proto::rpc::command::StateUsage;
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::{
    ANSWER_BYTES_IN_ALL_MAX, CLIENTS_MAX, DATA_SETS_MAX, DEFINITION_BYTES_IN_ALL_MAX,
    DROPPED_BUCKETS_MAX, ENDED_MOVES_MAX, GRANTS_IN_ALL_MAX, GROWING_INDEXES_MAX, INDEXES_MAX,
    LOADING_NODES_MAX, MOMENTS_MAX, MOVES_IN_ALL_MAX, NODES_MAX, PAST_TOPOLOGY_BYTES_IN_ALL_MAX,
    PLACES_IN_ALL_MAX, POSITIONS_MAX, REASON_BYTES_MAX, REMOVED_NODES_MAX, TOKENS_IN_ALL_MAX,
    USERS_MAX, VBUCKETS_IN_ALL_MAX, VERSIONS_IN_ALL_MAX,
};

/// A kind of record of which the state has a limited number.
#[derive(Clone, Copy)]
pub(in crate::state) struct Capacity {
    /// The name of the records in refusals.
    pub(in crate::state) what: &'static str,
    /// The limit of records. For some kinds a record is one byte.
    pub(in crate::state) limit: usize,
    /// The encoded size limit of a record, in bytes.
    pub(in crate::state) bytes: usize,
    /// The advice of a refusal.
    hint: &'static str,
    /// Returns the number of records of this kind that a [`Room`] counts. If present, an eighth
    /// of the limit is reserved for administrators; `None` for a kind without a reserve.
    pub(in crate::state) of_room: Option<fn(&StateUsage) -> usize>,
}

impl Capacity {
    /// Creates a kind without advice and reserve: its oldest records are dropped at the limit, or
    /// its commands have a separate refusal.
    const fn new(what: &'static str, limit: usize, bytes: usize) -> Self {
        Self { what, limit, bytes, hint: "", of_room: None }
    }

    const fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    const fn with_reserve(self, of_room: fn(&StateUsage) -> usize) -> Self {
        Self { of_room: Some(of_room), ..self }
    }

    /// Checks that a total of `all` records of this kind is within the limit.
    pub(in crate::state) fn check(&self, all: usize) -> Result<()> {
        let Self { what, limit, hint, .. } = *self;
        if all <= limit {
            return Ok(());
        }
        let what = format!("there would be {all} {what}; at most {limit} are possible");
        Err(Error::new(ErrorCode::OverLimit, what).with_hint(hint))
    }

    /// Checks that a total of `all` records of this kind leaves the reserve of administrators
    /// free.
    pub(in crate::state) fn check_without_reserve(&self, all: usize) -> Result<()> {
        let Self { what, limit, .. } = *self;
        let most = limit / 8 * 7;
        if all <= most {
            return Ok(());
        }
        let text = format!(
            "the cluster has no room for more {what}: {most} are for all users, the rest up to {limit} for administrators"
        );
        Err(Error::new(ErrorCode::OverLimit, text).with_hint(
            "drop what is no longer needed: SHOW INDEXES and SHOW BUCKETS list it; or ask an administrator",
        ))
    }
}

/// The encoded size limit of a position of a vbucket, in bytes.
const POSITION_BYTES_MAX: usize = 20;
/// The encoded size limit, in bytes, of a place (a copy of a slice on a node): a node id, and its
/// share of the lists.
pub(in crate::state) const PLACE_BYTES_MAX: usize = 12;
/// The encoded size limit of a topology without its places, in bytes: its number, its time and
/// its position in the log.
pub(in crate::state) const TOPOLOGY_BYTES_MAX: usize = 48;
/// The encoded size limit of a move, in bytes: its numbers and nodes.
const MOVE_BYTES_MAX: usize = 64;
/// The encoded size limit of a process, in bytes: its address, its zone and some numbers.
const NODE_BYTES_MAX: usize = 640;

/// The encoded size limit of a vbucket, without the cuts of epochs. Positions: its branches, one
/// in each range of dead epochs, and two during a rollback. 40 bytes: its owner and a hand-over.
/// 112 bytes: the copies of its bucket (five numbers and five projectors) or, for a partition,
/// its holders and its content.
const VBUCKET_BYTES_MAX: usize = POSITION_BYTES_MAX * (BRANCHES_MAX + DEAD_MAX + 2) + 40 + 112;

pub(in crate::state) const GROWING: Capacity =
    Capacity::new("indexes with a slice_bytes_max", GROWING_INDEXES_MAX, 20).with_hint(
        "set it to 0 for others, or set the number of slices with ALTER INDEX … SET (slices = n)",
    );
pub(in crate::state) const MOVES: Capacity =
    Capacity::new("moves in progress", MOVES_IN_ALL_MAX, MOVE_BYTES_MAX)
        .with_hint("wait until some have ended (SHOW MOVES), and repeat the request");
pub(in crate::state) const NODES: Capacity = Capacity::new("nodes", NODES_MAX, NODE_BYTES_MAX)
    .with_hint("REMOVE NODE what is no longer needed");
/// The capacity of users. The name of a user is stored twice, with a verifier and some numbers.
pub(in crate::state) const USERS: Capacity =
    Capacity::new("users", USERS_MAX, 2 * USER_NAME_BYTES_MAX + 144)
        .with_hint("DROP USER those that are no longer needed");
/// The capacity of tokens. A token has a number, a hash and an end.
pub(in crate::state) const TOKENS: Capacity =
    Capacity::new("tokens of all users", TOKENS_IN_ALL_MAX, 56)
        .with_hint("ALTER USER … DROP TOKEN those that are no longer needed");
/// The capacity of grants. A grant has a bucket and a set of privileges.
pub(in crate::state) const GRANTS: Capacity =
    Capacity::new("buckets on which users have privileges", GRANTS_IN_ALL_MAX, 12)
        .with_hint("REVOKE what is no longer needed, or GRANT … ON ALL");

/// All kinds of records in a snapshot.
pub(in crate::state) const CAPACITIES: [Capacity; 21] = [
    Capacity::new("vbuckets", VBUCKETS_IN_ALL_MAX, VBUCKET_BYTES_MAX)
        .with_hint("DROP BUCKET what is no longer needed, or give the new one fewer vbuckets")
        .with_reserve(|room| room.vbuckets),
    // A data set has some numbers, the last version that failed, and what was read of a version that is loading.
    Capacity::new("data sets", DATA_SETS_MAX, 1_280 + 50)
        .with_hint("DROP BUCKET what is no longer needed")
        .with_reserve(|room| room.data_sets),
    // A generation has some numbers, a key, and a topology.
    Capacity::new("indexes", INDEXES_MAX, StateUsage::RECORD_BYTES_MAX + TOPOLOGY_BYTES_MAX + 32)
        .with_hint("DROP INDEX what is no longer needed")
        .with_reserve(|room| room.indexes),
    // A place is in the index and in its newest topology.
    Capacity::new("copies of slices", PLACES_IN_ALL_MAX, 2 * PLACE_BYTES_MAX)
        .with_hint("DROP INDEX what is no longer needed, or ask for fewer slices or replicas")
        .with_reserve(|room| room.places),
    Capacity::new("bytes of definitions", DEFINITION_BYTES_IN_ALL_MAX, 1)
        .with_reserve(|room| room.definition_bytes),
    GROWING,
    MOVES,
    NODES,
    USERS,
    TOKENS,
    GRANTS,
    Capacity::new("positions in cuts", POSITIONS_MAX, POSITION_BYTES_MAX),
    Capacity::new("positions in rollback points", POSITIONS_MAX / 4, POSITION_BYTES_MAX),
    // A moment has an epoch and a log index, which only count and stay below 2^56.
    Capacity::new("moments of epochs", MOMENTS_MAX, 16),
    Capacity::new("bytes of past topologies", PAST_TOPOLOGY_BYTES_IN_ALL_MAX, 1),
    Capacity::new("ended moves", ENDED_MOVES_MAX, MOVE_BYTES_MAX + REASON_BYTES_MAX),
    Capacity::new("dropped buckets", DROPPED_BUCKETS_MAX, 32),
    // A version has names of 128 bytes, the pattern of its files, and its projectors.
    Capacity::new(
        "versions",
        VERSIONS_IN_ALL_MAX,
        VERSION_NAME_BYTES_MAX + PATTERN_BYTES_MAX + 256 + LOADING_NODES_MAX * 10,
    ),
    Capacity::new("removed nodes", REMOVED_NODES_MAX, NODE_BYTES_MAX),
    Capacity::new("clients", CLIENTS_MAX, 48),
    Capacity::new("bytes of answers and counters", ANSWER_BYTES_IN_ALL_MAX + 1_024, 1),
];

/// The size limit of a snapshot, in bytes.
pub(crate) const STATE_BYTES_MAX: usize = {
    let (mut bytes, mut at) = (0, 0);
    while at < CAPACITIES.len() {
        bytes += CAPACITIES[at].limit * CAPACITIES[at].bytes;
        at += 1;
    }
    bytes
};
