//! Refuses writes because of joint commits, which are commits over several buckets: writes to
//! documents that a prepared transaction locks, and joint commits above the number that a bucket
//! can remember.
//!
//! A single write waits for a locked document, and is refused after a while (55P03). Another
//! transaction that changes the document is refused at once (40001), since the prepared change is
//! later than its snapshot.

use proto::model::joint::JOINT_MAX;
use proto::{Error, ErrorCode, Result};

use crate::source::commits::prepared::locked_error;
use crate::source::pending::PendingChanges;

/// Returns an error if a prepared transaction locks one of the documents.
pub(in crate::source) fn check_not_locked<'i>(
    pending: &PendingChanges,
    mut ids: impl Iterator<Item = &'i str>,
) -> Result<()> {
    let commits = &pending.commits;
    if !commits.has_prepared() {
        return Ok(());
    }
    let name = &pending.bucket.info.name;
    let found = ids.find_map(|id| commits.holder(id).map(|by| locked_error(name, id, by)));
    found.map_or(Ok(()), Err)
}

/// Returns an error if a bucket has as many open joint commits and prepared transactions as it
/// can remember.
pub(super) fn check_joint_limit(pending: &PendingChanges) -> Result<()> {
    let commits = &pending.commits;
    let is_full = |open| open + commits.prepared().len() >= JOINT_MAX;
    let open = commits.open().len();
    // Commits that an epoch has leave the list with the next group.
    if !is_full(open) || !is_full(open.saturating_sub(pending.bucket.settled_ids().len())) {
        return Ok(());
    }
    let name = &pending.bucket.info.name;
    let what = format!(
        "bucket {name} has {JOINT_MAX} commits with other buckets that no epoch has, which is the limit"
    );
    Err(Error::new(ErrorCode::TooBusy, what).with_hint(
        "try again; SHOW NODES shows whether a coordinator leads and every projector answers",
    ))
}
