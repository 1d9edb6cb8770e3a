//! Fills a follower's copy with the mutations that it lacks, up to the place in the leader's
//! history at which a session begins.
//!
//! First the copy fetches the transactions that are prepared at that place and that it lacks, in
//! several messages, because each of the following steps needs them.
//!
//! A copy *in sync* may become the leader at any moment, so it must never have only a part of a
//! statement: it stores all missing groups in one step. Usually these groups are few, because the
//! leader has waited for the copy. If too many mutations are missing, the copy waits until the
//! leader gives it up, and then joins again. A joining copy that the leader waits for is treated
//! like one in sync: the coordinators may have put it in sync without its knowledge.
//!
//! A *free* copy is joining, and the leader does not wait for it. If it lacks few mutations, it
//! stores them in one step too, and a session begins in which the leader may wait for it.
//! Otherwise it fetches the missing data in many steps:
//!
//! 1. From the leader's log, vbucket by vbucket, if the log still has the missing mutations.
//! 2. A vbucket whose missing mutations were purged from the log is restarted: first with the
//!    purge point, then with the documents (all such vbuckets in one walk over the bucket), then
//!    with the log after the purge point.
//!
//! Each message with documents shows them at a different moment. A document includes all
//! mutations before the moment at which it was read, and the log contains all later ones in
//! order. So a vbucket is correct once its log has reached the end that the leader's history had
//! when the last document was read. Until then it is partial, and a process that finds a partial
//! vbucket copies it again. As the leader's log has grown in the meantime, a further session
//! follows.

use proto::model::assignment::VbucketSet;
use proto::model::commits::NewestCommits;
use proto::model::cut::{Cut, Position};
use proto::model::history::{SourceHistory, branch_of};
use proto::model::ids::{Seqno, VbucketId};
use proto::plant::{self, Plant};
use proto::rpc::api::{CopiedMutation, CopyAnswer, CopyRequestKind, HandedDocument};
use proto::{Error, ErrorCode, Result};

use super::follower::{Follower, LeaderCalls, unexpected_answer_error};
use crate::source::StoredDocument;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;

/// The number of missing mutations above which a copy fetches them before a session begins,
/// because the leader keeps all groups of a session in memory.
const FAR_MUTATIONS: u64 = 20_000;

/// Rewinds the copy to the leader's history, and stores its missing mutations. Returns true if
/// the copy has reached the place at which the session begins. Returns false if mutations are
/// still missing, so that another session must follow.
pub async fn fill(
    follower: &Follower,
    leader: &LeaderCalls,
    (base, purged): (&SourceHistory, &[Seqno]),
    commits: &NewestCommits,
    is_free: bool,
) -> Result<bool> {
    let (to, of_leader) = (base.clone(), commits.clone());
    let rewind = move |writer: &Writer, bucket: &Bucket| {
        writer.rewind_copy(bucket, (&to, &of_leader), is_free)
    };
    follower.run_exclusively(rewind).await?;
    let durable = follower.bucket.durable();
    let behind = vbuckets_behind_leader(&durable, &base.durable)?;
    let begins =
        |vbucket: VbucketId| purged.get(usize::from(vbucket.0)).copied().unwrap_or_default();
    let is_lost = |(vbucket, end): &(VbucketId, Position)| end.seqno < begins(*vbucket);
    let lost: Vec<(VbucketId, Seqno)> =
        durable.iter().filter(is_lost).map(|(vbucket, _)| (vbucket, begins(vbucket))).collect();
    if !is_free {
        return match lost.is_empty() && fill_in_one_step(follower, leader, (base, commits)).await? {
            true => Ok(true),
            false => Err(too_far_behind_error()),
        };
    }
    if !lost.is_empty() {
        follower.projector.roles.forget_compared(follower.bucket.info.id);
        fill_from_documents(follower, leader, (base, &lost)).await?;
        return Ok(false);
    }
    let missing: u64 = behind.iter().map(|(_, mutations)| mutations).sum();
    // Few mutations may be large documents.
    if missing <= FAR_MUTATIONS && fill_in_one_step(follower, leader, (base, commits)).await? {
        return Ok(true);
    }
    follower.projector.roles.forget_compared(follower.bucket.info.id);
    for (vbucket, _) in behind {
        let to = base.durable.get(vbucket).seqno;
        fill_from_log(follower, leader, (vbucket, to), base).await?;
    }
    Ok(false)
}

/// Returns the vbuckets in which a copy lacks mutations of its leader, each with the number of
/// missing mutations. An error if the copy has more mutations than the leader, which a rewind
/// must have removed before.
fn vbuckets_behind_leader(copy: &Cut, leader: &Cut) -> Result<Vec<(VbucketId, u64)>> {
    let mut behind = Vec::new();
    for (vbucket, end) in copy.iter() {
        let to = leader.get(vbucket).seqno;
        match to.0.checked_sub(end.seqno.0) {
            Some(0) => {}
            Some(mutations) => behind.push((vbucket, mutations)),
            None => {
                return Err(Error::internal(format!(
                    "vbucket {vbucket}: the leader ends at seqno {to}, and this copy is ahead at {} after it was taken back",
                    end.seqno
                )));
            }
        }
    }
    Ok(behind)
}

/// Returns the error of a copy in sync that lacks too many mutations. Possible causes are that
/// its disk was lost, that its directory is an older copy, or that it was down. The leader will
/// give the copy up; then it joins again.
fn too_far_behind_error() -> Error {
    Error::unavailable("this copy lacks more than a copy in sync may lack")
        .with_hint("the leader gives it up in a second, and it joins again")
}

/// Stores all missing mutations in one step. Changes nothing and returns false if the mutations
/// are too many for one step.
async fn fill_in_one_step(
    follower: &Follower,
    leader: &LeaderCalls,
    (base, commits): (&SourceHistory, &NewestCommits),
) -> Result<bool> {
    let bytes_max = follower.projector.config.copy_step_bytes_max;
    let (mut missing, mut bytes) = (Vec::new(), 0);
    for (vbucket, mut after) in follower.bucket.durable().iter() {
        let to = base.durable.get(vbucket).seqno;
        while after.seqno < to {
            let log = request_log(leader, (vbucket, after, to)).await?;
            let Some(last) = log.last().map(|mutation| mutation.seqno) else {
                return Err(log_ends_early_error(vbucket, to));
            };
            let branches = base.logs.get(vbucket);
            let vbuuid = branches.map_or(after.vbuuid, |branches| branch_of(branches, last));
            after = Position { vbuuid, seqno: last };
            bytes += log.iter().map(|mutation| mutation.document.len() + 64).sum::<usize>();
            if bytes > bytes_max {
                return Ok(false);
            }
            missing.extend(log);
        }
    }
    if missing.is_empty() {
        return Ok(true);
    }
    let (base, commits) = (base.clone(), commits.clone());
    let put = move |writer: &Writer, bucket: &Bucket| {
        writer.put_missing_mutations(bucket, missing, (&base, commits))
    };
    follower.run_exclusively(put).await.map(|()| true)
}

/// Requests a range of a vbucket's log from the leader.
async fn request_log(
    leader: &LeaderCalls,
    (vbucket, after, to): (VbucketId, Position, Seqno),
) -> Result<Vec<CopiedMutation>> {
    match leader.send_request(CopyRequestKind::Log { vbucket, after, to }).await? {
        CopyAnswer::Log(log) => Ok(log),
        _ => Err(unexpected_answer_error()),
    }
}

fn log_ends_early_error(vbucket: VbucketId, to: Seqno) -> Error {
    let what = format!("vbucket {vbucket}: the leader's log ends before seqno {to}");
    Error::unavailable(what)
}

/// Fetches the log of a vbucket up to a seqno, and stores it.
async fn fill_from_log(
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
            // The copy is on the leader's branches, and a partial vbucket has no own branches.
            after.vbuuid = branch_of(branches, after.seqno);
        }
        let log = request_log(leader, (vbucket, after, to)).await?;
        let Some(last) = log.last().map(|mutation| mutation.seqno) else {
            return Err(log_ends_early_error(vbucket, to));
        };
        let is_part = follower.bucket.is_partial(vbucket) && last < to;
        let known = base.logs.get(vbucket).filter(|_| !is_part).cloned();
        follower
            .run_exclusively(move |writer, bucket| {
                writer.put_log_range(bucket, vbucket, log, known.as_ref())
            })
            .await?;
    }
}

/// Fetches and stores the documents of vbuckets, and the part of their logs between the purge
/// points and the moment at which the last documents were read.
async fn fill_from_documents(
    follower: &Follower,
    leader: &LeaderCalls,
    (base, lost): (&SourceHistory, &[(VbucketId, Seqno)]),
) -> Result<()> {
    let parts = lost.to_vec();
    follower
        .run_exclusively(move |writer, bucket| writer.begin_partial_vbuckets(bucket, &parts))
        .await?;
    let vbuckets: VbucketSet = lost.iter().map(|(vbucket, _)| *vbucket).collect();
    let (mut behind, mut seen) = (None, Cut::zero(follower.bucket.info.vbuckets));
    while !plant::is(Plant::CopyPurgeUnnoticed) {
        let question = CopyRequestKind::Documents { vbuckets: vbuckets.clone(), behind };
        let CopyAnswer::Documents { documents, next, seen: end } =
            leader.send_request(question).await?
        else {
            return Err(unexpected_answer_error());
        };
        let stored =
            |HandedDocument { id, seqno, document }| StoredDocument { id, seqno, document };
        let documents: Vec<_> = documents.into_iter().map(stored).collect();
        follower
            .run_exclusively(move |writer, bucket| writer.put_copied_documents(bucket, &documents))
            .await?;
        seen = end;
        behind = next;
        if behind.is_none() {
            break;
        }
    }
    for (vbucket, purged) in lost {
        // A vbucket whose documents are all from before its purge point takes its branches with an empty part of the log.
        let to = seen.get(*vbucket).seqno.max(*purged);
        fill_from_log(follower, leader, (*vbucket, to), base).await?;
        if follower.bucket.is_partial(*vbucket) {
            let (vbucket, known) = (*vbucket, base.logs.get(*vbucket).cloned());
            follower
                .run_exclusively(move |writer, bucket| {
                    writer.put_log_range(bucket, vbucket, Vec::new(), known.as_ref())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_ahead_of_its_leader_is_refused() {
        let cut = |ends: &[u64]| {
            let position = |end: &u64| Position { seqno: Seqno(*end), ..Position::default() };
            Cut::from_positions(ends.iter().map(position).collect())
        };
        let lacks = vbuckets_behind_leader(&cut(&[3, 7, 0]), &cut(&[3, 9, 4])).unwrap();
        assert_eq!(lacks, [(VbucketId(1), 2), (VbucketId(2), 4)]);
        let error = vbuckets_behind_leader(&cut(&[3, 7]), &cut(&[3, 6])).unwrap_err();
        assert_eq!(error.code, ErrorCode::Internal);
        assert!(error.message.contains("vbucket 1"), "{error}");
    }
}
