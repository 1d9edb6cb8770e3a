//! The limits of the state: how many records of each kind it may have.
//! [`crate::state::capacity::table`] has the bytes of each.

/// The limit of positions in the retained cuts of all buckets: 11 MiB of memory. A position takes at most 20 bytes of
/// a snapshot, so this is less than a quarter of the largest message between processes. Rollback points may add a quarter.
pub(in crate::state) const POSITIONS_MAX: usize = 11 << 16;
/// The limit of stored moments (log positions of published epochs), of all buckets. There are at
/// most as many buckets as vbuckets, and each may have [`MOMENTS_EACH_MIN`].
pub(in crate::state) const MOMENTS_MAX: usize = MOMENTS_EACH_MIN * VBUCKETS_IN_ALL_MAX;
/// The number of epochs of each bucket whose moments (log positions) are always stored: the two
/// oldest and the newest.
pub(in crate::state) const MOMENTS_EACH_MIN: usize = 3;
/// The limit of vbuckets in all buckets. In addition to the cuts, a snapshot has several
/// positions for each vbucket, of at most 20 bytes each: its branches, its position in each range
/// of dead epochs, and two positions during a rollback.
pub(in crate::state) const VBUCKETS_IN_ALL_MAX: usize = 32 << 10;

/// The limit of indexes.
pub(in crate::state) const INDEXES_MAX: usize = 2048;
/// The limit of indexes on one bucket. Older buckets may have more, and get no further ones.
pub(in crate::state) const BUCKET_INDEXES_MAX: usize = 512;
/// The size limit of the encoded definitions of the indexes on one bucket, in bytes.
pub(in crate::state) const BUCKET_DEFINITION_BYTES_MAX: usize = 1 << 20;
/// The size limit of the encoded definitions of all indexes and of the names of buckets, in bytes.
/// Every process stores them, and a new watcher of the catalog receives all of them at once.
pub(in crate::state) const DEFINITION_BYTES_IN_ALL_MAX: usize = 4 << 20;

/// The limit of indexes that grow automatically (with a `slice_bytes_max`).
pub(in crate::state) const GROWING_INDEXES_MAX: usize = 256;

/// The limit of places (a copy of a slice on a node) of all indexes.
pub(in crate::state) const PLACES_IN_ALL_MAX: usize = 64 << 10;
/// The size limit of the past topologies of all indexes, in bytes. Scans and tokens may still refer
/// to some of them.
pub(in crate::state) const PAST_TOPOLOGY_BYTES_IN_ALL_MAX: usize = 2 << 20;
/// The limit of moves in progress, of all indexes. A plan with more is carried out in several steps.
pub(in crate::state) const MOVES_IN_ALL_MAX: usize = 16 << 10;
/// The number of ended moves that are stored, for SHOW MOVES.
pub(in crate::state) const ENDED_MOVES_MAX: usize = 64;
/// The length limit of the reason with which a move ended, in bytes.
pub(in crate::state) const REASON_BYTES_MAX: usize = 1 << 10;

/// The number of dropped buckets that are remembered, so that projectors remove their documents. A
/// projector that was disconnected during more drops keeps the documents of the oldest.
pub(in crate::state) const DROPPED_BUCKETS_MAX: usize = 256;

/// The limit of versioned data sets.
pub(in crate::state) const DATA_SETS_MAX: usize = 64;
/// The number of versions that each data set can always have: the current one, and one that is loading.
pub(in crate::state) const VERSIONS_EACH_MIN: usize = 2;
/// The limit of the versions of all data sets: the guaranteed ones, and some older versions that
/// are still read.
pub(in crate::state) const VERSIONS_IN_ALL_MAX: usize = VERSIONS_EACH_MIN * DATA_SETS_MAX + 64;
/// The limit of projectors that load one version.
pub(in crate::state) const LOADING_NODES_MAX: usize = 128;

/// The limit of registered processes.
pub(in crate::state) const NODES_MAX: usize = 1024;
/// The number of removed nodes that are remembered, for SHOW NODES.
pub(in crate::state) const REMOVED_NODES_MAX: usize = 16;

/// The number of clients whose answers are stored for retries. DDL is sent by few clients.
pub(in crate::state) const CLIENTS_MAX: usize = 1024;
/// The size limit of the answers that are stored for retries, of all clients, in bytes.
pub(in crate::state) const ANSWER_BYTES_IN_ALL_MAX: usize = 3 << 19;

/// The limit of users.
pub(in crate::state) const USERS_MAX: usize = 1024;
/// The limit of the tokens of all users.
pub(in crate::state) const TOKENS_IN_ALL_MAX: usize = 2048;
/// The limit of the tokens of a user.
pub(in crate::state) const TOKENS_EACH_MAX: usize = 16;
/// The limit of grants on single buckets, over all users: each counts one user and one bucket.
pub(in crate::state) const GRANTS_IN_ALL_MAX: usize = 8192;

/// Returns the longest prefix of a text that has at most this many bytes.
pub(crate) fn longest_prefix(text: &str, bytes_max: usize) -> &str {
    let fits = |end: &usize| text.is_char_boundary(*end);
    &text[..(0..=bytes_max.min(text.len())).rev().find(fits).unwrap_or(0)]
}
