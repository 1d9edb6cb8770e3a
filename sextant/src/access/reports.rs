//! Filters for reports: they remove what a user may not see from the coordinator's status, the
//! users, and the results of commits.

use std::sync::Arc;

use proto::model::ids::BucketId;
use proto::model::users::{Privilege, User, Users};
use proto::rpc::api::{CoordinatorStatus, WriteReply};
use proto::{Error, Result};

use super::view::View;

/// Removes the buckets and indexes that a user may not see from a status. The text about
/// differences between topology and reports mentions any of them, so it remains only for a user
/// that may see the whole cluster.
pub(super) fn visible_status(mut status: CoordinatorStatus, view: &View) -> CoordinatorStatus {
    let shown = view.visible_catalog();
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

/// Returns the results of a commit in those buckets that a user may know. If the search failed
/// with an error that may name another bucket, that error is replaced.
pub(super) fn visible_results(
    found: Result<Vec<WriteReply>>,
    view: &View,
) -> Result<Vec<WriteReply>> {
    let is_whole = view.user.grants.all.allow(Privilege::Monitor);
    let found = found.map_err(|error| match is_whole {
        true => error,
        false => Error::new(error.code, "it is not known yet what became of the transaction")
            .with_hint("try again later"),
    });
    let mut replies = found?;
    replies.retain(|reply| !view.privileges_on(reply.position.bucket).is_empty());
    Ok(replies)
}
