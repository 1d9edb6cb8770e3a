//! Fills a copy up to the place at which a session begins.
//!
//! First the copy fetches the transactions that are prepared at that place and that it lacks, in
//! pieces, because each of the following steps needs them.
//!
//! A copy *in sync* may lead at any moment, so it must never have a part of a statement: it stores
//! all missing groups in one step. These are at most the groups that waited for it. A copy that
//! lacks more waits until it is given up, and then joins again. A joining copy that the leader
//! waits for is treated in the same way, since it may already be in sync without having received
//! that.
//!
//! A *free* copy is joining, and the leader does not wait for it. If it lacks few mutations, it
//! stores them in one step too, and a session begins in which the leader may wait for it. Otherwise
//! it fetches the missing data piece by piece: first from the leader's retained log, vbucket by
//! vbucket. Vbuckets whose log was purged after the copy's end are restarted: with the purge point,
//! then their documents, all in one walk over the bucket and each piece as of its own moment, then
//! the log after the purge point. A document includes all mutations before the moment at which it
//! was read, and the log contains all later ones in order; so a vbucket is correct once its log has
//! reached the end that the history had when the last document was read. Until then it is partial,
//! and a process that finds a partial vbucket starts again. As the log has grown meanwhile, a
//! further session follows.

use proto::model::assignment::VbucketSet;
use proto::model::commits::NewestCommits;
use proto::model::cut::{Cut, Position};
use proto::model::history::{SourceHistory, branch_of};
use proto::model::ids::{Seqno, VbucketId};
use proto::plant::{self, Plant};
use proto::rpc::api::{CopiedMutation, CopyAnswer, CopyQuestion, HandedDocument};
use proto::{Error, ErrorCode, Result};

use super::follower::{Follower, LeaderCalls, unexpected};
use crate::source::StoredDocument;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;

/// The number of missing mutations above which a copy fetches them without a session, because the
/// leader keeps the groups of a session in memory.
const FAR_MUTATIONS: u64 = 20_000;

/// Rewinds the copy to the leader's history, and stores its missing mutations. Returns true if the
/// copy is exactly at the beginning of the session, false if it lacks less than before and another
/// session must follow.
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
    follower.exclusively(rewind).await?;
    let durable = follower.bucket.durable();
    let behind = behind(&durable, &base.durable)?;
    let begins =
        |vbucket: VbucketId| purged.get(usize::from(vbucket.0)).copied().unwrap_or_default();
    let is_lost = |(vbucket, end): &(VbucketId, Position)| end.seqno < begins(*vbucket);
    let lost: Vec<(VbucketId, Seqno)> =
        durable.iter().filter(is_lost).map(|(vbucket, _)| (vbucket, begins(vbucket))).collect();
    if !is_free {
        return match lost.is_empty() && at_once(follower, leader, (base, commits)).await? {
            true => Ok(true),
            false => Err(lacks_much()),
        };
    }
    if !lost.is_empty() {
        follower.projector.roles.not_compared(follower.bucket.info.id);
        by_documents(follower, leader, (base, &lost)).await?;
        return Ok(false);
    }
    let missing: u64 = behind.iter().map(|(_, mutations)| mutations).sum();
    // Few mutations may be large documents.
    if missing <= FAR_MUTATIONS && at_once(follower, leader, (base, commits)).await? {
        return Ok(true);
    }
    follower.projector.roles.not_compared(follower.bucket.info.id);
    for (vbucket, _) in behind {
        let to = base.durable.get(vbucket).seqno;
        by_log(follower, leader, (vbucket, to), base).await?;
    }
    Ok(false)
}

/// Returns the vbuckets in which a copy lacks mutations of its leader, each with their number. An
/// error if the copy has more mutations than the leader, because a rewind must have removed them
/// before.
fn behind(copy: &Cut, leader: &Cut) -> Result<Vec<(VbucketId, u64)>> {
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

/// Returns the error of a copy in sync that lacks more than the groups in flight: its disk was
/// lost, its directory is an older copy, or it was down and will be given up. Then it joins again.
fn lacks_much() -> Error {
    Error::unavailable("this copy lacks more than a copy in sync may lack")
        .with_hint("the leader gives it up in a second, and it joins again")
}

/// Stores all missing mutations in one step. Returns false without a change if they are too many
/// for one step.
async fn at_once(
    follower: &Follower,
    leader: &LeaderCalls,
    (base, commits): (&SourceHistory, &NewestCommits),
) -> Result<bool> {
    let bytes_max = follower.projector.config.copy_step_bytes_max;
    let (mut missing, mut bytes) = (Vec::new(), 0);
    for (vbucket, mut after) in follower.bucket.durable().iter() {
        let to = base.durable.get(vbucket).seqno;
        while after.seqno < to {
            let log = ask_log(leader, (vbucket, after, to)).await?;
            let Some(last) = log.last().map(|mutation| mutation.seqno) else {
                return Err(ends_early(vbucket, to));
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
        writer.put_missing(bucket, missing, (&base, commits))
    };
    follower.exclusively(put).await.map(|()| true)
}

async fn ask_log(
    leader: &LeaderCalls,
    (vbucket, after, to): (VbucketId, Position, Seqno),
) -> Result<Vec<CopiedMutation>> {
    match leader.ask(CopyQuestion::Log { vbucket, after, to }).await? {
        CopyAnswer::Log(log) => Ok(log),
        _ => Err(unexpected()),
    }
}

fn ends_early(vbucket: VbucketId, to: Seqno) -> Error {
    let what = format!("vbucket {vbucket}: the leader's log ends before seqno {to}");
    Error::unavailable(what)
}

/// Fetches the log of a vbucket up to a seqno.
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
            // The copy is on the leader's branches, and a partial vbucket has no own branches.
            after.vbuuid = branch_of(branches, after.seqno);
        }
        let log = ask_log(leader, (vbucket, after, to)).await?;
        let Some(last) = log.last().map(|mutation| mutation.seqno) else {
            return Err(ends_early(vbucket, to));
        };
        let is_part = follower.bucket.is_partial(vbucket) && last < to;
        let known = base.logs.get(vbucket).filter(|_| !is_part).cloned();
        follower
            .exclusively(move |writer, bucket| writer.put_log(bucket, vbucket, log, known.as_ref()))
            .await?;
    }
}

/// Fetches the documents of vbuckets, and the log after their purge points up to the moment of the
/// last documents.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_ahead_of_its_leader_is_refused() {
        let cut = |ends: &[u64]| {
            let position = |end: &u64| Position { seqno: Seqno(*end), ..Position::default() };
            Cut::from_positions(ends.iter().map(position).collect())
        };
        let lacks = behind(&cut(&[3, 7, 0]), &cut(&[3, 9, 4])).unwrap();
        assert_eq!(lacks, [(VbucketId(1), 2), (VbucketId(2), 4)]);
        let error = behind(&cut(&[3, 7]), &cut(&[3, 6])).unwrap_err();
        assert_eq!(error.code, ErrorCode::Internal);
        assert!(error.message.contains("vbucket 1"), "{error}");
    }
}
