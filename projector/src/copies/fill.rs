//! Brings a copy to the place at which a session begins.
//!
//! What the leader's log still has comes from there, vbucket by vbucket. If its log of some vbuckets was purged behind the copy's end, these
//! begin anew: with the purge point, then their documents, all in one walk over the bucket and each piece as of its own moment, then
//! the log behind the purge point. A document includes all mutations before the moment at which it was read, and the log brings all
//! later ones in order; so a vbucket is right once its log has reached the end that the history had when the last document was read.
//! Until then it is in part, and a process that finds it so begins again. As the log has gone on meanwhile, a further session follows.

use proto::model::assignment::VbucketSet;
use proto::model::cut::{Cut, Position};
use proto::model::history::{SourceHistory, branch_of};
use proto::model::ids::{Seqno, VbucketId};
use proto::plant::{self, Plant};
use proto::rpc::api::{CopyAnswer, CopyQuestion, HandedDocument};
use proto::{Error, ErrorCode, Result};

use super::session::{Follower, LeaderCalls, unexpected};
use crate::source::StoredDocument;

/// A copy that lacks more mutations than this takes them without a session, because the leader keeps the groups of a session in
/// memory.
const FAR_MUTATIONS: u64 = 20_000;

/// Goes back to the leader's history, and takes what the copy lacks. Returns true if it has exactly what the session begins with, false if
/// it came nearer and another session must follow.
pub async fn fill(
    follower: &Follower,
    leader: &LeaderCalls,
    (base, purged): (&SourceHistory, &[Seqno]),
) -> Result<bool> {
    let to = base.clone();
    follower.exclusively(move |writer, bucket| writer.rewind_copy(bucket, &to)).await?;
    let durable = follower.bucket.durable();
    let begins =
        |vbucket: VbucketId| purged.get(usize::from(vbucket.0)).copied().unwrap_or_default();
    let lost: Vec<(VbucketId, Seqno)> = durable
        .iter()
        .filter(|(vbucket, end)| end.seqno < begins(*vbucket))
        .map(|(vbucket, _)| (vbucket, begins(vbucket)))
        .collect();
    if !lost.is_empty() {
        by_documents(follower, leader, (base, &lost)).await?;
        return Ok(false);
    }
    let lacks =
        |(vbucket, end): (VbucketId, Position)| base.durable.get(vbucket).seqno.0 - end.seqno.0;
    let missing: u64 = durable.iter().map(lacks).sum();
    for (vbucket, _) in durable.iter().filter(|end| lacks(*end) > 0) {
        let to = base.durable.get(vbucket).seqno;
        by_log(follower, leader, (vbucket, to), base).await?;
    }
    Ok(missing <= FAR_MUTATIONS)
}

/// Takes the log of a vbucket up to a seqno.
async fn by_log(
    follower: &Follower,
    leader: &LeaderCalls,
    (vbucket, to): (VbucketId, Seqno),
    base: &SourceHistory,
) -> Result<()> {
    loop {
        let mut after = follower.bucket.durable().get(vbucket);
        if after.seqno >= to {
            return Ok(());
        }
        if let Some(branches) = base.logs.get(vbucket) {
            // The copy is on the leader's branches, and a vbucket in part has no own ones.
            after.vbuuid = branch_of(branches, after.seqno);
        }
        let question = CopyQuestion::Log { vbucket, after, to };
        let CopyAnswer::Log(log) = leader.ask(question).await? else { return Err(unexpected()) };
        let Some(last) = log.last().map(|mutation| mutation.seqno) else {
            let what = format!("vbucket {vbucket}: the leader's log ends before seqno {to}");
            return Err(Error::unavailable(what));
        };
        let is_part = follower.bucket.is_partial(vbucket) && last < to;
        let known = base.logs.get(vbucket).filter(|_| !is_part).cloned();
        follower
            .exclusively(move |writer, bucket| writer.put_log(bucket, vbucket, log, known.as_ref()))
            .await?;
    }
}

/// Takes vbuckets by their documents, and the log behind their purge points up to the moment of the last documents.
async fn by_documents(
    follower: &Follower,
    leader: &LeaderCalls,
    (base, lost): (&SourceHistory, &[(VbucketId, Seqno)]),
) -> Result<()> {
    let parts = lost.to_vec();
    follower.exclusively(move |writer, bucket| writer.begin_parts(bucket, &parts)).await?;
    let vbuckets: VbucketSet = lost.iter().map(|(vbucket, _)| *vbucket).collect();
    let (mut behind, mut seen) = (None, Cut::zero(follower.bucket.info.vbuckets));
    while !plant::is(Plant::CopyPurgeUnnoticed) {
        let question = CopyQuestion::Documents { vbuckets: vbuckets.clone(), behind };
        let CopyAnswer::Documents { documents, next, seen: end } = leader.ask(question).await?
        else {
            return Err(unexpected());
        };
        let stored =
            |HandedDocument { id, seqno, document }| StoredDocument { id, seqno, document };
        let documents: Vec<_> = documents.into_iter().map(stored).collect();
        follower.exclusively(move |writer, bucket| writer.put_copied(bucket, &documents)).await?;
        seen = end;
        behind = next;
        if behind.is_none() {
            break;
        }
    }
    for (vbucket, purged) in lost {
        // A vbucket whose documents are all from before its purge point takes its branches with an empty part of the log.
        let to = seen.get(*vbucket).seqno.max(*purged);
        by_log(follower, leader, (*vbucket, to), base).await?;
        if follower.bucket.is_partial(*vbucket) {
            let (vbucket, known) = (*vbucket, base.logs.get(*vbucket).cloned());
            follower
                .exclusively(move |writer, bucket| {
                    writer.put_log(bucket, vbucket, Vec::new(), known.as_ref())
                })
                .await?;
        }
    }
    let is_whole = |(vbucket, _): &(VbucketId, Seqno)| !follower.bucket.is_partial(*vbucket);
    match lost.iter().all(is_whole) {
        true => Ok(()),
        false => Err(Error::new(ErrorCode::Internal, "a vbucket stayed in part")),
    }
}
