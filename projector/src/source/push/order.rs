//! Takes mutations that their producer has numbered, in their order.

use std::collections::BTreeMap;

use proto::model::cut::Position;
use proto::model::ids::VbucketId;
use proto::rpc::api::PushReply;
use proto::{Error, ErrorCode, Result};

use super::check::CheckedPush;
use crate::source::pending::Pending;
use crate::source::record::BucketRecord;

/// Takes pushed mutations up to the first that does not fit; then comes the error that the request has met already.
pub(in crate::source) fn push(
    pending: &mut Pending,
    mutations: Vec<CheckedPush>,
    error: Option<Error>,
) -> Result<PushReply> {
    // All or nothing: whoever sends it to the wrong place can send it again as it is.
    let elsewhere = |push: &&CheckedPush| !pending.keeping.takes(push.mutation.vbucket);
    if let Some(push) = mutations.iter().find(elsewhere) {
        return Err(pending.bucket.not_home(push.mutation.vbucket));
    }
    let mut durable = BTreeMap::new();
    for CheckedPush { vbuuid, mutation } in mutations {
        let position = Position { vbuuid, seqno: mutation.seqno };
        check_order(pending, mutation.vbucket, position)?;
        let at = usize::from(mutation.vbucket.0);
        if pending.branches[at].is_empty() {
            pending.branches[at] = vec![(vbuuid, 0)];
            let branches = pending.branches.clone();
            pending.changes.record = Some(BucketRecord { branches, ..pending.bucket.record() });
        }
        pending.next[at] = position;
        durable.insert(mutation.vbucket, position);
        pending.add(mutation);
    }
    error.map_or(Ok(PushReply { durable: durable.into_iter().collect() }), Err)
}

/// Does a pushed mutation follow the last one? The first of a vbucket names its branch.
fn check_order(pending: &Pending, vbucket: VbucketId, position: Position) -> Result<()> {
    let at = usize::from(vbucket.0);
    let (last, expected) = (pending.next[at], pending.next[at].seqno.0 + 1);
    let branch = pending.branches[at].first().map(|(vbuuid, _)| *vbuuid);
    let name = &pending.bucket.info.name;
    let what = if branch.is_some_and(|branch| branch != position.vbuuid) {
        format!("branch {:x} is unknown, its branch is {:x}", position.vbuuid.0, last.vbuuid.0)
    } else if position.vbuuid.0 == 0 {
        "a branch of zero is none".to_owned()
    } else if position.seqno.0 < expected {
        format!("seqno {} is here already, {expected} is the next", position.seqno)
    } else if position.seqno.0 > expected {
        format!("seqno {} leaves a gap, {expected} is the next", position.seqno)
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorCode::OutOfOrder, format!("vbucket {vbucket} of bucket {name}: {what}"))
        .with_hint("go on from the durable position; what came before in the request is kept"))
}
