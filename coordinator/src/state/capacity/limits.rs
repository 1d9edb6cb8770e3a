//! Limits of the state, so that a snapshot fits in one message between members.
//!
//! Each kind of record has a limit of its own, in bytes of a snapshot. [`STATE_BYTES_MAX`] is their sum, and the build
//! fails if it exceeds a message (see `replica`). A command that would pass a limit is refused.

use proto::model::data_set::{PATTERN_BYTES_MAX, VERSION_NAME_BYTES_MAX};
use proto::model::history::BRANCHES_MAX;
use proto::model::rollback::DEAD_MAX;
use proto::model::users::USER_NAME_BYTES_MAX;
use proto::rpc::command::Room;

/// The limit of positions in the retained cuts of all buckets: 11 MiB of memory. A position takes at most 20 bytes of
/// a snapshot, so this is less than a quarter of the largest message between processes. Rollback points may add a quarter.
pub(in crate::state) const POSITIONS_MAX: usize = 11 << 16;
/// The limit of the moments of epochs of all buckets. There are at most as many buckets as vbuckets, and each may have
/// [`MOMENTS_EACH_MIN`].
pub(in crate::state) const MOMENTS_MAX: usize = MOMENTS_EACH_MIN * VBUCKETS_IN_ALL_MAX;
/// The number of epochs of a bucket whose moments are kept in any case: the two oldest and the newest.
pub(in crate::state) const MOMENTS_EACH_MIN: usize = 3;
/// The encoded size limit of the moment of an epoch: an epoch and a log index, which only count and stay below 2^56.
const MOMENT_BYTES_MAX: usize = 16;
/// The limit of vbuckets in all buckets. Besides the cuts, a snapshot has for each vbucket its branches, its position
/// in each range of dead epochs, and two positions during a rollback, each of at most 20 bytes.
pub(in crate::state) const VBUCKETS_IN_ALL_MAX: usize = 32 << 10;
/// The limit of the bytes that positions take in a snapshot: cuts, branches, and the data of rollbacks.
const POSITION_BYTES_IN_ALL_MAX: usize =
    20 * (POSITIONS_MAX + POSITIONS_MAX / 4 + VBUCKETS_IN_ALL_MAX * (BRANCHES_MAX + DEAD_MAX + 2));
/// The encoded size limit of a vbucket in the assignment of its bucket: its owner and a hand-over.
const ASSIGNMENT_BYTES_MAX: usize = 40;

/// The encoded size limit of the copies of a bucket: its number, four numbers, the projector that it moves to, and at most four
/// projectors. Each bucket has a vbucket, so there are at most as many.
const COPIES_BYTES_MAX: usize = 112;

/// The limit of indexes.
pub(in crate::state) const INDEXES_MAX: usize = 2048;
/// The limit of indexes on one bucket. Older buckets may have more, and get no further ones.
pub(in crate::state) const BUCKET_INDEXES_MAX: usize = 512;
/// The limit of the encoded definitions of the indexes on one bucket.
pub(in crate::state) const BUCKET_DEFINITION_BYTES_MAX: usize = 1 << 20;
/// The limit of the encoded definitions of all indexes, and of the names of buckets. Every process keeps them, and a
/// new watcher of the catalog receives all of them at once.
pub(in crate::state) const DEFINITION_BYTES_IN_ALL_MAX: usize = 4 << 20;
/// See [`Room::RECORD_BYTES_MAX`].
pub(in crate::state) const RECORD_BYTES_MAX: usize = Room::RECORD_BYTES_MAX;

/// The limit of indexes with a `slice_bytes_max`.
pub(in crate::state) const GROWING_INDEXES_MAX: usize = 256;
/// The encoded size limit of a `slice_bytes_max` setting: two numbers.
const SLICE_BYTES_MAX_BYTES: usize = 20;
/// The encoded size limit of a generation's key, and of the newest generation of an index.
const GENERATION_BYTES_MAX: usize = 32;

/// The limit of places (a copy of a slice on a node) of all indexes.
pub(in crate::state) const PLACES_IN_ALL_MAX: usize = 64 << 10;
/// The encoded size limit of a place: a node id, and its share of the lists.
pub(in crate::state) const PLACE_BYTES_MAX: usize = 12;
/// The limit of the past topologies of all indexes, of which scans and tokens may still name some.
pub(in crate::state) const PAST_TOPOLOGY_BYTES_IN_ALL_MAX: usize = 2 << 20;
/// The encoded size limit of a topology besides its places: its number, its time and its position in the log.
pub(in crate::state) const TOPOLOGY_BYTES_MAX: usize = 48;
/// The limit of moves in progress, of all indexes. A plan with more is carried out in several steps.
pub(in crate::state) const MOVES_IN_ALL_MAX: usize = 16 << 10;
/// The encoded size limit of a move in progress.
const MOVE_BYTES_MAX: usize = 64;
/// The number of ended moves that are kept.
pub(in crate::state) const ENDED_MOVES_MAX: usize = 64;
/// The length limit of the reason with which a move ended.
pub(in crate::state) const REASON_BYTES_MAX: usize = 1 << 10;

/// The number of dropped buckets that are remembered, so that projectors remove their documents. A projector that was away for more
/// drops keeps the rest.
pub(in crate::state) const DROPPED_BUCKETS_MAX: usize = 256;
/// The encoded size limit of a dropped bucket: its number and its random id.
const DROPPED_BUCKET_BYTES_MAX: usize = 32;

/// The limit of versioned data sets.
pub(in crate::state) const DATA_SETS_MAX: usize = 64;
/// The number of versions that each data set can always have: the current one, and one that is loading.
pub(in crate::state) const VERSIONS_EACH_MIN: usize = 2;
/// The limit of their versions, all together: with room for some that are kept.
pub(in crate::state) const VERSIONS_IN_ALL_MAX: usize = VERSIONS_EACH_MIN * DATA_SETS_MAX + 64;
/// The encoded size limit of a data set besides its versions: some numbers, and the last version that failed.
const DATA_SET_BYTES_MAX: usize = 1_280;
/// The encoded size limit of a version besides its partitions: names of 128 bytes, the pattern of its files, and its projectors.
const VERSION_BYTES_MAX: usize =
    VERSION_NAME_BYTES_MAX + PATTERN_BYTES_MAX + 256 + LOADING_NODES_MAX * 10;
/// The encoded size limit of what the first projector has read of a version that is loading: five numbers.
const FILES_READ_BYTES_MAX: usize = 50;
/// The number of projectors that take part in a version.
pub(in crate::state) const LOADING_NODES_MAX: usize = 128;
/// The encoded size limit of a partition of a version: its holders and its content. It is a vbucket of a bucket without copies.
const PARTITION_BYTES_MAX: usize = 112;

/// The limit of registered processes.
pub(in crate::state) const NODES_MAX: usize = 1024;
/// The number of removed nodes that are remembered, for SHOW NODES.
pub(in crate::state) const REMOVED_NODES_MAX: usize = 16;
/// The encoded size limit of a registered process: its address, its zone and some numbers.
const NODE_BYTES_MAX: usize = 640;

/// The number of clients with kept answers. DDL comes from few clients.
pub(in crate::state) const CLIENTS_MAX: usize = 1024;
/// The limit of the answers that are kept for retries, of all clients.
pub(in crate::state) const ANSWER_BYTES_IN_ALL_MAX: usize = 3 << 19;
/// The encoded size limit of a client besides its answers.
const CLIENT_BYTES_MAX: usize = 48;

/// The limit of users.
pub(in crate::state) const USERS_MAX: usize = 1024;
/// The encoded size limit of a user besides its tokens and its grants on buckets: its name, twice, a verifier and some numbers.
pub(in crate::state) const USER_BYTES_MAX: usize = 2 * USER_NAME_BYTES_MAX + 144;
/// The limit of the tokens of all users.
pub(in crate::state) const TOKENS_IN_ALL_MAX: usize = 2048;
/// The limit of the tokens of a user.
pub(in crate::state) const TOKENS_EACH_MAX: usize = 16;
/// The encoded size limit of a token: its number, its hash and its end.
pub(in crate::state) const TOKEN_BYTES_MAX: usize = 56;
/// The limit of the buckets on which single users have privileges, summed over all users.
pub(in crate::state) const GRANTS_IN_ALL_MAX: usize = 8192;
/// The encoded size limit of a grant: a bucket and a set of privileges.
pub(in crate::state) const GRANT_BYTES_MAX: usize = 12;

const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// The largest snapshot: the sum of the limits above. The last term is for the counters.
pub(crate) const STATE_BYTES_MAX: usize = POSITION_BYTES_IN_ALL_MAX
    + VBUCKETS_IN_ALL_MAX * (ASSIGNMENT_BYTES_MAX + larger(COPIES_BYTES_MAX, PARTITION_BYTES_MAX))
    + MOMENTS_MAX * MOMENT_BYTES_MAX
    + DEFINITION_BYTES_IN_ALL_MAX
    + INDEXES_MAX * (RECORD_BYTES_MAX + TOPOLOGY_BYTES_MAX + GENERATION_BYTES_MAX)
    + GROWING_INDEXES_MAX * SLICE_BYTES_MAX_BYTES
    + 2 * PLACES_IN_ALL_MAX * PLACE_BYTES_MAX
    + PAST_TOPOLOGY_BYTES_IN_ALL_MAX
    + MOVES_IN_ALL_MAX * MOVE_BYTES_MAX
    + ENDED_MOVES_MAX * (MOVE_BYTES_MAX + REASON_BYTES_MAX)
    + DROPPED_BUCKETS_MAX * DROPPED_BUCKET_BYTES_MAX
    + DATA_SETS_MAX * DATA_SET_BYTES_MAX
    + VERSIONS_IN_ALL_MAX * VERSION_BYTES_MAX
    + DATA_SETS_MAX * FILES_READ_BYTES_MAX
    + (NODES_MAX + REMOVED_NODES_MAX) * NODE_BYTES_MAX
    + CLIENTS_MAX * CLIENT_BYTES_MAX
    + ANSWER_BYTES_IN_ALL_MAX
    + USERS_MAX * USER_BYTES_MAX
    + TOKENS_IN_ALL_MAX * TOKEN_BYTES_MAX
    + GRANTS_IN_ALL_MAX * GRANT_BYTES_MAX
    + 1024;

/// The longest prefix of a text with at most this many bytes.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let fits = |end: &usize| text.is_char_boundary(*end);
    &text[..(0..=bytes_max.min(text.len())).rev().find(fits).unwrap_or(0)]
}
