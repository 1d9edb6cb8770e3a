//! Accepts pushed mutations in the order in which their producer has numbered them.

use std::collections::BTreeMap;

use proto::model::cut::Position;
use proto::model::history::Branches;
use proto::model::ids::{VbucketId, Vbuuid};
use proto::rpc::api::PushReply;
use proto::{Error, ErrorCode, Result};

use super::check::CheckedPush;
use crate::source::pending::PendingChanges;
use documents::record::BucketRecord;

/// Accepts pushed mutations up to the first one that does not follow its predecessor. Then
/// returns `error`: the error that validation has found in the same request, if there is one.
pub(in crate::source) fn accept_pushed(
    pending: &mut PendingChanges,
    mutations: Vec<CheckedPush>,
    error: Option<Error>,
) -> Result<PushReply> {
    // A request to the wrong projector is refused as a whole, so that it can be sent again unchanged.
    let elsewhere = |push: &&CheckedPush| !pending.ownership.is_writable(push.mutation.vbucket);
    if let Some(push) = mutations.iter().find(elsewhere) {
        return Err(pending.bucket.not_owned(push.mutation.vbucket));
    }
    let mut durable = BTreeMap::new();
    for CheckedPush { vbuuid, mutation } in mutations {
        let position = Position { vbuuid, seqno: mutation.seqno };
        check_order(pending, mutation.vbucket, position)?;
        begin_first_branch(pending, mutation.vbucket, vbuuid);
        pending.next[usize::from(mutation.vbucket.0)] = position;
        durable.insert(mutation.vbucket, position);
        pending.add(mutation);
    }
    error.map_or(Ok(PushReply { durable: durable.into_iter().collect() }), Err)
}

/// Begins the first branch of a vbucket, with the id `vbuuid`. Does nothing if the vbucket has a
/// branch.
pub(super) fn begin_first_branch(pending: &mut PendingChanges, vbucket: VbucketId, vbuuid: Vbuuid) {
    let at = usize::from(vbucket.0);
    if pending.branches[at].is_empty() {
        pending.branches[at] = vec![(vbuuid, 0)];
        let branches = pending.branches.clone();
        pending.changes.record = Some(BucketRecord { branches, ..pending.bucket.record() });
    }
}

/// Returns an error if a pushed mutation does not follow the last one of its vbucket. The first
/// mutation of a vbucket determines its branch.
fn check_order(pending: &PendingChanges, vbucket: VbucketId, position: Position) -> Result<()> {
    let at = usize::from(vbucket.0);
    let Some(what) = out_of_order_reason(pending.next[at], &pending.branches[at], position) else {
        return Ok(());
    };
    let name = &pending.bucket.info.name;
    Err(Error::new(ErrorCode::OutOfOrder, format!("vbucket {vbucket} of bucket {name}: {what}"))
        .with_hint(
            "continue from the durable position; the earlier mutations of the request are stored",
        ))
}

/// Returns the reason why a mutation at a position does not follow the last one of its vbucket;
/// `None` if it does.
pub(super) fn out_of_order_reason(
    last: Position,
    branches: &Branches,
    position: Position,
) -> Option<String> {
    let expected = last.seqno.0 + 1;
    let branch = branches.first().map(|(vbuuid, _)| *vbuuid);
    Some(if branch.is_some_and(|branch| branch != position.vbuuid) {
        format!(
            "branch {:x} is unknown, the current branch is {:x}",
            position.vbuuid.0, last.vbuuid.0
        )
    } else if position.vbuuid.0 == 0 {
        "vbuuid must not be 0".to_owned()
    } else if position.seqno.0 < expected {
        format!("seqno {} is stored already, the next is {expected}", position.seqno)
    } else if position.seqno.0 > expected {
        format!("seqno {} leaves a gap, the next is {expected}", position.seqno)
    } else {
        return None;
    })
}
