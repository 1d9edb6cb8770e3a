//! The leader's answers to its followers.

use std::sync::Arc;
use std::time::Duration;

use proto::env::TaskPolicy;
use proto::model::assignment::VbucketSet;
use proto::model::commits::TransactionEvent;
use proto::model::cut::Position;
use proto::model::history::SourceHistory;
use proto::model::ids::{NodeId, Seqno, TransactionId, VbucketId, vbucket_of};
use proto::rpc::api::{CopiedGroup, CopyAnswer, CopyQuestion, CopyRequest};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::pieces::{copied, group_bytes, piece_of};
use crate::hand_over::pieces::{check_kept, check_place, mutations, next_documents};
use crate::projector::Projector;
use crate::source::groups::link::NextGroups;
use crate::source::view::bucket::Bucket;
use documents::document_store::Batch;

/// The maximum number of mutations that are copied on the caller's thread, which may also serve
/// connections.
const INLINE_MUTATIONS_MAX: usize = 1_000;
/// The time that a follower's request waits for the next group. An answer without groups keeps the lease alive.
const IDLE: Duration = Duration::from_millis(250);
/// The time after which the leader answers a busy follower, which requests no groups.
const BUSY: Duration = Duration::from_millis(100);

/// Answers a request of a follower.
pub async fn serve(projector: &Projector, request: CopyRequest) -> Result<CopyAnswer> {
    let CopyRequest { bucket: id, term, node, question } = request;
    let not_leader = || {
        let what = format!("this projector does not lead bucket {id} in term {term}");
        Error::new(ErrorCode::NotOwner, what).with_hint("the catalog names the leader; try again")
    };
    let bucket = projector.find(id).ok_or_else(not_leader)?;
    // A bucket that the coordinators have not compared may have less than its followers.
    let leads =
        || bucket.is_led() && bucket.links.copies().is_some_and(|copies| copies.term == term);
    if !leads() {
        return Err(not_leader());
    }
    let answer = match question {
        CopyQuestion::Begin { prepared } => begin(projector, &bucket, node, prepared).await?,
        CopyQuestion::Compare => CopyAnswer::Compared(logged(projector, &bucket).await),
        CopyQuestion::Log { vbucket, after, to } => {
            log(projector, &bucket, (vbucket, after, to)).await?
        }
        CopyQuestion::Documents { vbuckets, behind } => {
            documents(projector, &bucket, vbuckets, behind).await?
        }
        CopyQuestion::Next { session, durable, heard, held } => {
            next(projector, &bucket, (node, session), (durable, heard, held)).await?
        }
        CopyQuestion::Prepared { session, held } => {
            let kept = bucket.links.prepared(node, session, Instant::now())?;
            let bytes_max = projector.config.copy_message_bytes;
            let piece = projector.env.blocking(move || piece_of(&kept, held, bytes_max)).await?;
            CopyAnswer::Prepared(piece)
        }
        CopyQuestion::Busy { session, heard } => {
            busy(projector, &bucket, (node, session), heard).await?
        }
    };
    match leads() {
        true => Ok(answer),
        false => Err(not_leader()),
    }
}

/// Returns the history, including logged groups that are not visible yet.
async fn logged(projector: &Projector, bucket: &Arc<Bucket>) -> SourceHistory {
    let at = Arc::clone(bucket);
    let history = move || match at.logged_with(|| Ok(())) {
        Ok((history, _)) => history,
        Err(_) => at.history(),
    };
    projector.env.blocking(history).await
}

async fn begin(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    node: NodeId,
    has: Vec<(TransactionId, u64)>,
) -> Result<CopyAnswer> {
    let (session, at, store) =
        (projector.env.random.next_u64(), Arc::clone(bucket), projector.store());
    let now = Instant::now();
    let begun = move || {
        let mut is_awaited = false;
        let (base, commits) = at.logged_with(|| {
            is_awaited = at.links.begin(node, session, now)?;
            Ok(())
        })?;
        let mut kept = Batch::default();
        let commits = commits.with_prepared(|prepared| {
            let of_follower = has.iter().find(|(of, _)| *of == prepared.transaction);
            if of_follower.is_none_or(|(_, digest)| *digest != prepared.digest()) {
                kept.commits.push(TransactionEvent::Prepared(Arc::clone(prepared)));
            }
            Some(Arc::new(prepared.without_changes()))
        });
        at.links.keep_prepared(node, session, Arc::new(kept))?;
        let extents = store.extents(at.info.id)?;
        let purged = extents.iter().map(|extent| extent.purged).collect();
        Ok(CopyAnswer::Begun { session, base, purged, commits, is_awaited })
    };
    projector.env.blocking(begun).await
}

async fn log(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    (vbucket, after, to): (VbucketId, Position, Seqno),
) -> Result<CopyAnswer> {
    let history = logged(projector, bucket).await;
    check_place(&history, vbucket, after)?;
    let to = to.min(history.durable.get(vbucket).seqno);
    let read = mutations(projector, bucket, (vbucket, after.seqno, to)).await?;
    check_kept(&read, (vbucket, after.seqno, to))?;
    Ok(CopyAnswer::Log(read.iter().map(|mutation| copied(mutation)).collect()))
}

async fn documents(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    vbuckets: VbucketSet,
    behind: Option<String>,
) -> Result<CopyAnswer> {
    let (store, at) = (projector.store(), Arc::clone(bucket));
    let read = move || {
        let (seen, snapshot) = {
            let _gate = at.gate.shown();
            (at.durable(), store.snapshot_after(at.info.id, behind.as_deref())?)
        };
        let is_wanted = |id: &str| vbuckets.contains(vbucket_of(id, at.info.vbuckets));
        let (documents, next) = next_documents(snapshot, is_wanted)?;
        Ok(CopyAnswer::Documents { documents, next, seen })
    };
    projector.env.blocking(read).await
}

async fn next(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    (node, session): (NodeId, u64),
    (durable, heard, held): (u64, u64, u64),
) -> Result<CopyAnswer> {
    let mut changes = bucket.watch();
    if bucket.links.heard(node, session, (durable, heard), Instant::now())? {
        show(projector, bucket);
    }
    let idle = tokio::time::sleep(IDLE);
    tokio::pin!(idle);
    while !bucket.links.has_next(node, session)? && !bucket.is_removed() {
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { break },
            () = &mut idle => break,
        }
    }
    let bytes_max = projector.config.copy_message_bytes;
    let next = bucket.links.next(node, session, bytes_max, Instant::now())?;
    let NextGroups { answer, first, groups } = next;
    if let [large] = &groups[..]
        && (held > 0 || group_bytes(large) > 2 * bytes_max)
    {
        let large = Arc::clone(large);
        let piece = projector.env.blocking(move || piece_of(&large, held, bytes_max)).await?;
        return Ok(CopyAnswer::Piece { answer, group: first, piece });
    }
    let mutations: usize = groups.iter().map(|batch| batch.mutations.len()).sum();
    let groups = match mutations > INLINE_MUTATIONS_MAX {
        true => projector.env.blocking(move || copied_groups(&groups)).await,
        false => copied_groups(&groups),
    };
    Ok(CopyAnswer::Groups { answer, first, groups })
}

/// Answers a busy follower, which requests no groups and only reports that it is alive.
async fn busy(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    (node, session): (NodeId, u64),
    heard: u64,
) -> Result<CopyAnswer> {
    if bucket.links.busy(node, session, heard, Instant::now())? {
        show(projector, bucket);
    }
    tokio::time::sleep(BUSY).await;
    let answer = bucket.links.answer(node, session, Instant::now())?;
    Ok(CopyAnswer::Groups { answer, first: 0, groups: Vec::new() })
}

/// Makes the groups visible that all copies have which the leader waits for; on this thread if that
/// is quick.
fn show(projector: &Projector, bucket: &Arc<Bucket>) {
    let (name, policy) = ("projector groups", TaskPolicy::EndProcess);
    let is_done = projector.env.inline(name, policy, || bucket.gate.show_small());
    if is_done == Some(true) {
        return bucket.wake();
    }
    let at = Arc::clone(bucket);
    projector.env.spawn_blocking(name, policy, move || {
        at.gate.show_waiting();
        at.wake();
    });
}

fn copied_groups(groups: &[Arc<Batch>]) -> Vec<CopiedGroup> {
    let group = |batch: &Arc<Batch>| CopiedGroup {
        mutations: batch.mutations.iter().map(|m| copied(m)).collect(),
        commits: batch.commits.clone(),
    };
    groups.iter().map(group).collect()
}
