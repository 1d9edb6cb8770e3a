//! Limits of the state, so that a snapshot fits in one message between members.

use proto::model::history::BRANCHES_MAX;
use proto::model::rollback::DEAD_MAX;

/// The limit of positions in the retained cuts of all buckets: 16 MiB of memory. A position takes at most 20 bytes of
/// a snapshot, so this is a third of the largest message between processes. Rollback points may add a quarter.
pub(super) const POSITIONS_MAX: usize = 1 << 20;
/// The limit of vbuckets in all buckets. Besides the cuts, a snapshot has for each vbucket its branches, its position
/// in each range of dead epochs, and two positions during a rollback, each of at most 20 bytes. Together with the
/// cuts this leaves some megabytes of a message for indexes.
pub(super) const VBUCKETS_IN_ALL_MAX: usize = 32 << 10;
/// The share of a snapshot that positions take at most: cuts, branches, and the data of rollbacks. The rest of a
/// message is for indexes.
pub(crate) const POSITION_BYTES_IN_ALL_MAX: usize =
    20 * (POSITIONS_MAX + POSITIONS_MAX / 4 + VBUCKETS_IN_ALL_MAX * (BRANCHES_MAX + DEAD_MAX + 2));
