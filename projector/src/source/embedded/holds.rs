//! Refusals for the sake of joint commits: of documents that a prepared transaction holds, and of more commits than a bucket remembers.
//!
//! A single write waits for a document that is held, and is refused after a while (55P03). Another transaction that changes it is
//! refused at once (40001): it would be after its own snapshot.

use proto::model::joint::JOINT_MAX;
use proto::{Error, ErrorCode, Result};

use crate::source::commits::joint::held;
use crate::source::pending::PendingChanges;

/// Checks that no prepared transaction holds a document.
pub(in crate::source) fn check_unheld<'i>(
    pending: &PendingChanges,
    mut ids: impl Iterator<Item = &'i str>,
) -> Result<()> {
    let joint = pending.commits.joint();
    if joint.prepared().next().is_none() {
        return Ok(());
    }
    let name = &pending.bucket.info.name;
    let found = ids.find_map(|id| joint.holder(id).map(|by| held(name, id, by)));
    found.map_or(Ok(()), Err)
}

/// Checks that a bucket takes another joint commit.
pub(super) fn check_room(pending: &PendingChanges) -> Result<()> {
    let joint = pending.commits.joint();
    let is_full = |open| open + joint.prepared().count() >= JOINT_MAX;
    // Commits that an epoch has leave the list with the next group.
    if !is_full(joint.open().count())
        || !is_full(joint.open().count().saturating_sub(pending.bucket.settled().len()))
    {
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
