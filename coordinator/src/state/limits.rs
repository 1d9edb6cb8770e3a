//! What the state holds at most, so that a snapshot of it is one message between members.

use proto::model::history::BRANCHES_MAX;
use proto::model::rollback::DEAD_MAX;

/// Positions that the kept cuts of all buckets may hold together: 16 MiB of memory, and of a snapshot,
/// where a position takes at most 20 bytes, a third of the largest message between processes. Rollback points
/// may add a quarter.
pub(super) const POSITIONS_MAX: usize = 1 << 20;
/// What the buckets may have together. Beside the cuts a snapshot has of each vbucket its branches, its place in each
/// range of dead epochs, and two while it is rolled back, of 20 bytes each at most: with the cuts less than a message
/// between members may have, and some megabytes are left for indexes.
pub(super) const VBUCKETS_IN_ALL_MAX: usize = 32 << 10;
/// What positions take of a snapshot, at most: cuts, branches, and what is kept of rollbacks. The rest of a message is
/// for indexes.
pub(crate) const POSITION_BYTES_IN_ALL_MAX: usize =
    20 * (POSITIONS_MAX + POSITIONS_MAX / 4 + VBUCKETS_IN_ALL_MAX * (BRANCHES_MAX + DEAD_MAX + 2));
