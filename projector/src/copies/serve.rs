//! The leader's answers to the requests of its followers: the beginning of a session, a range of
//! the log, documents, and the next groups.

use std::sync::Arc;
use std::time::Duration;

use proto::env::TaskPolicy;
use proto::model::assignment::VbucketSet;
use proto::model::commits::TransactionEvent;
use proto::model::cut::Position;
use proto::model::history::SourceHistory;
use proto::model::ids::{NodeId, Seqno, TransactionId, VbucketId, vbucket_of};
use proto::rpc::api::{CopiedGroup, CopyAnswer, CopyRequest, CopyRequestKind};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::pieces::{group_bytes, next_piece, to_copied_mutation};
use crate::hand_over::pieces::{check_not_purged, check_position, next_documents, read_mutations};
use crate::projector::Projector;
use crate::source::groups::link::NextGroups;
use crate::source::view::bucket::Bucket;
use documents::document_store::Batch;

/// The maximum number of mutations that an answer copies on the thread of the call. That thread
/// may also serve connections, so larger answers use another thread.
const INLINE_MUTATIONS_MAX: usize = 1_000;
/// The time for which a follower's request waits for the next group. Then the leader answers
/// without groups, which keeps its lease alive.
const IDLE: Duration = Duration::from_millis(250);
/// The time after which the leader answers a busy follower, which only reports that it is alive.
const BUSY: Duration = Duration::from_millis(100);

/// Answers a request of a follower.
pub async fn answer_request(projector: &Projector, request: CopyRequest) -> Result<CopyAnswer> {
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
        CopyRequestKind::Begin { prepared } => {
            begin_session(projector, &bucket, node, prepared).await?
        }
        CopyRequestKind::Compare => CopyAnswer::Compared(logged_history(projector, &bucket).await),
        CopyRequestKind::Log { vbucket, after, to } => {
            answer_log_request(projector, &bucket, (vbucket, after, to)).await?
        }
        CopyRequestKind::Documents { vbuckets, behind } => {
            answer_documents_request(projector, &bucket, vbuckets, behind).await?
        }
        CopyRequestKind::Next { session, durable, heard, held } => {
            answer_next_groups(projector, &bucket, (node, session), (durable, heard, held)).await?
        }
        CopyRequestKind::Prepared { session, held } => {
            let kept = bucket.links.prepared(node, session, Instant::now())?;
            let bytes_max = projector.config.copy_message_bytes;
            let piece = projector.env.blocking(move || next_piece(&kept, held, bytes_max)).await?;
            CopyAnswer::Prepared(piece)
        }
        CopyRequestKind::Busy { session, heard } => {
            answer_busy(projector, &bucket, (node, session), heard).await?
        }
    };
    match leads() {
        true => Ok(answer),
        false => Err(not_leader()),
    }
}

/// Returns the bucket's history including the groups that are in the log but not visible yet.
async fn logged_history(projector: &Projector, bucket: &Arc<Bucket>) -> SourceHistory {
    let at = Arc::clone(bucket);
    let history = move || match at.logged_with(|| Ok(())) {
        Ok((history, _)) => history,
        Err(_) => at.history(),
    };
    projector.env.blocking(history).await
}

/// Begins a session of a follower. `has` lists the prepared transactions of the follower, with
/// digests of their changes.
async fn begin_session(
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
            is_awaited = at.links.begin_session(node, session, now)?;
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

/// Answers a request for a range of a vbucket's log.
async fn answer_log_request(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    (vbucket, after, to): (VbucketId, Position, Seqno),
) -> Result<CopyAnswer> {
    let history = logged_history(projector, bucket).await;
    check_position(&history, vbucket, after)?;
    let to = to.min(history.durable.get(vbucket).seqno);
    let read = read_mutations(projector, bucket, (vbucket, after.seqno, to)).await?;
    check_not_purged(&read, (vbucket, after.seqno, to))?;
    Ok(CopyAnswer::Log(read.iter().map(|mutation| to_copied_mutation(mutation)).collect()))
}

/// Answers a request for the documents of some vbuckets whose ids follow `behind`.
async fn answer_documents_request(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    vbuckets: VbucketSet,
    behind: Option<String>,
) -> Result<CopyAnswer> {
    let (store, at) = (projector.store(), Arc::clone(bucket));
    let read = move || {
        let (seen, snapshot) = {
            let _gate = at.gate.hold_publication();
            (at.durable(), store.snapshot_after(at.info.id, behind.as_deref())?)
        };
        let is_wanted = |id: &str| vbuckets.contains(vbucket_of(id, at.info.vbuckets));
        let (documents, next) = next_documents(snapshot, is_wanted)?;
        Ok(CopyAnswer::Documents { documents, next, seen })
    };
    projector.env.blocking(read).await
}

/// Answers a request for the next groups, after waiting until there are some.
async fn answer_next_groups(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    (node, session): (NodeId, u64),
    (durable, heard, held): (u64, u64, u64),
) -> Result<CopyAnswer> {
    let mut changes = bucket.watch();
    if bucket.links.record_durable_group(node, session, (durable, heard), Instant::now())? {
        show_ready_groups(projector, bucket);
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
    let next = bucket.links.next_groups(node, session, bytes_max, Instant::now())?;
    let NextGroups { answer, first, groups } = next;
    if let [large] = &groups[..]
        && (held > 0 || group_bytes(large) > 2 * bytes_max)
    {
        let large = Arc::clone(large);
        let piece = projector.env.blocking(move || next_piece(&large, held, bytes_max)).await?;
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
async fn answer_busy(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    (node, session): (NodeId, u64),
    heard: u64,
) -> Result<CopyAnswer> {
    if bucket.links.record_busy(node, session, heard, Instant::now())? {
        show_ready_groups(projector, bucket);
    }
    tokio::time::sleep(BUSY).await;
    let answer = bucket.links.new_answer_number(node, session, Instant::now())?;
    Ok(CopyAnswer::Groups { answer, first: 0, groups: Vec::new() })
}

/// Makes the groups visible that all copies have which the leader waits for. Runs on this thread
/// if that is quick, otherwise on another.
fn show_ready_groups(projector: &Projector, bucket: &Arc<Bucket>) {
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
        mutations: batch.mutations.iter().map(|m| to_copied_mutation(m)).collect(),
        commits: batch.commits.clone(),
    };
    groups.iter().map(group).collect()
}
