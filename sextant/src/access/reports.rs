//! The parts of the coordinator's status, of the users and of commits that a user may see.

use std::sync::Arc;

use proto::model::ids::BucketId;
use proto::model::users::{Privilege, User, Users};
use proto::rpc::api::{CoordinatorStatus, WriteReply};
use proto::{Error, Result};

use super::view::View;

/// Removes the reports of buckets and indexes that a user may not see. The differences between
/// topology and reports are a text about all of them, so they stay only for a user that may see the
/// whole cluster.
pub(super) fn restricted(mut status: CoordinatorStatus, view: &View) -> CoordinatorStatus {
    let shown = view.shown();
    let bucket = |id: &BucketId| shown.buckets.contains_key(id);
    for node in &mut status.nodes {
        node.buckets.retain(|progress| bucket(&progress.bucket));
        node.slices.retain(|progress| shown.local_index(progress.slice.local_index()).is_some());
        node.moves.retain(|progress| shown.local_index(progress.index).is_some());
    }
    status.left_out.retain(|(index, _)| shown.local_index(*index).is_some());
    status.halved.retain(|halved| bucket(&halved.bucket) && bucket(&halved.lost_in));
    status.holds.retain(|hold| bucket(&hold.bucket) && bucket(&hold.waits_for));
    status.version_waits.retain(|(version, _)| bucket(version));
    status.past_slow.retain(|(of, _)| bucket(of));
    if !view.user.grants.all.allow(Privilege::Monitor) {
        status.differences.clear();
    }
    status
}

/// Returns the users that a user may know: all users for an administrator, and otherwise only the
/// user itself.
pub(super) fn users(known: &Arc<Users>, user: &Arc<User>) -> Arc<Users> {
    if user.grants.all.allow(Privilege::Admin) {
        return Arc::clone(known);
    }
    let by_name = [(user.name.clone(), Arc::clone(user))].into();
    Arc::new(Users { cas: known.cas, by_name, ..Users::default() })
}

/// Returns the results of a commit in the buckets that a user may know. The error of a failed
/// search is replaced if it may name another bucket.
pub(super) fn committed(found: Result<Vec<WriteReply>>, view: &View) -> Result<Vec<WriteReply>> {
    let is_whole = view.user.grants.all.allow(Privilege::Monitor);
    let found = found.map_err(|error| match is_whole {
        true => error,
        false => Error::new(error.code, "it is not known yet what became of the transaction")
            .with_hint("try again later"),
    });
    let mut replies = found?;
    replies.retain(|reply| !view.on(reply.position.bucket).is_empty());
    Ok(replies)
}
