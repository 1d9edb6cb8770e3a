//! The tasks of a bucket's leader that concern the set of copies. The leader requests changes of
//! the set from the coordinators, removes a copy that is one too many, and hands leadership over
//! to another copy when the bucket is moved.

use std::sync::Arc;
use std::time::Duration;

use proto::env::TaskPolicy;
use proto::model::copies::{Copies, CopiesChange, CopyRole};
use proto::model::ids::{BucketId, NodeId};
use proto::plant::{self, Plant};
use proto::rpc::command::{ChangeCopies, Command, Outcome};
use proto::{Error, Result};
use tokio::time::Instant;

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// The interval between two checks whether the set of copies must change.
const LOOK: Duration = Duration::from_millis(50);
/// The time for which a leader that hands leadership over waits until the other copies have all
/// groups.
const SETTLE_WAIT: Duration = Duration::from_secs(3);

/// The time limit for the coordinators' answer to a leader that hands leadership over. The bucket
/// is not served until they answer.
const GIVE_WAIT: Duration = Duration::from_secs(3);

/// Requests a change of the configuration from the coordinators. Returns the configuration
/// afterwards, or `None` if they refuse the change; both answers are final. After an error the
/// change may still be made, unless a newer configuration is known ([`is_void`]).
pub async fn request_change(
    projector: &Projector,
    bucket: BucketId,
    (revision, change): (u64, CopiesChange),
) -> Result<Option<Copies>> {
    let command = Command::ChangeCopies(ChangeCopies { bucket, revision, change });
    match projector.directory.coordinator().propose(command.into()).await?.outcome {
        Outcome::Copies(copies) => {
            projector.record_copies(bucket, &copies);
            Ok(Some(copies))
        }
        _ => Ok(None),
    }
}

/// Returns true if a change that was requested for this revision of the configuration can no
/// longer be made, because a newer revision exists.
pub fn is_change_outdated(projector: &Projector, bucket: BucketId, revision: u64) -> bool {
    projector.copies_of(bucket).is_none_or(|newest| newest.revision > revision)
}

/// Maintains the set of copies of a bucket that this projector leads. Runs until the task is
/// cancelled or the bucket is retired.
pub async fn maintain_copies(projector: Arc<Projector>, bucket: Arc<Bucket>) {
    let id = bucket.info.id;
    while !bucket.has_ended() {
        tokio::time::sleep(LOOK).await;
        // Before the coordinators have compared the bucket, its followers may have more.
        if !bucket.is_led() {
            continue;
        }
        if let Some(newest) = projector.copies_of(id) {
            bucket.links.set_configuration(&newest, projector.node_id(), Instant::now());
        }
        if bucket.gate.has_ready() {
            show_ready_groups(&projector, &bucket);
        }
        let planned = bucket.links.change_to_request(Instant::now());
        if let Some(question) = planned.or_else(|| surplus_copy_removal(&projector, &bucket))
            && let Err(error) = request_and_apply_change(&projector, &bucket, question).await
        {
            // The change may still be made. The links keep a growth or a shrink as a question until it is answered.
            tracing::debug!(%id, %error, "a change of copies has no answer yet");
            continue;
        }
        if let Some(to) = ready_successor(&bucket) {
            hand_leadership_over(&projector, &bucket, to).await;
        }
    }
}

/// Requests a change of the set of copies, and applies the answer.
async fn request_and_apply_change(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    question: (u64, CopiesChange),
) -> Result<()> {
    let (id, node) = (bucket.info.id, question.1.node());
    if matches!(question.1, CopiesChange::Shrink(_)) && plant::is(Plant::SilentCopyIgnored) {
        bucket.links.remove_copy_unasked(node);
        show_ready_groups(projector, bucket);
    }
    if let Some(copies) = request_change(projector, id, question).await? {
        bucket.links.set_configuration(&copies, projector.node_id(), Instant::now());
        tracing::info!(%id, change = ?question.1, in_sync = ?copies.in_sync, "the copies have changed");
    }
    bucket.links.record_change_answer(node);
    show_ready_groups(projector, bucket);
    Ok(())
}

/// Makes the groups visible that had to wait for a copy which the leader does not wait for any
/// more.
fn show_ready_groups(projector: &Arc<Projector>, bucket: &Arc<Bucket>) {
    let at = Arc::clone(bucket);
    projector.env.spawn_blocking("projector groups", TaskPolicy::EndProcess, move || {
        at.gate.show_waiting();
        at.wake();
    });
}

/// Returns the change that removes a copy which is one too many, and the revision of the
/// configuration that the change is for; `None` if there are not too many copies.
fn surplus_copy_removal(projector: &Projector, bucket: &Bucket) -> Option<(u64, CopiesChange)> {
    let copies = bucket.links.copies()?;
    let catalog = projector.catalog.borrow().clone();
    let count = |node: NodeId| {
        let others = catalog.iter().flat_map(|catalog| catalog.copies.values());
        others.filter(|copies| copies.role(node) != CopyRole::None).count()
    };
    Some((copies.revision, CopiesChange::Leave(surplus_copy(&copies, count)?)))
}

/// Returns the copy to remove if there are too many copies: the follower whose projector has the
/// most copies of buckets, according to `count`. `None` if there are not too many copies, or if a
/// copy is joining that is not the target of a move.
fn surplus_copy(copies: &Copies, count: impl Fn(NodeId) -> usize) -> Option<NodeId> {
    let is_target = |node: &NodeId| copies.move_to == Some(*node);
    if !copies.has_surplus() || !copies.joining.iter().all(is_target) {
        return None;
    }
    let may_go = copies.followers().filter(|node| !is_target(node));
    may_go.max_by_key(|node| (count(*node), *node))
}

/// Returns the copy that leadership should move to, if that copy is in sync and lacks few groups;
/// otherwise `None`.
fn ready_successor(bucket: &Bucket) -> Option<NodeId> {
    let copies = bucket.links.copies()?;
    copies.move_to.filter(|to| {
        copies.in_sync.contains(to) && bucket.links.lacks_few_groups(*to, Instant::now())
    })
}

/// Hands leadership over to another copy: refuses further mutations, waits until all copies have
/// the earlier ones, and requests the change from the coordinators. Until then writers get an
/// error that tells them to retry, so no write is lost.
async fn hand_leadership_over(projector: &Arc<Projector>, bucket: &Arc<Bucket>, to: NodeId) {
    if !bucket.pause(bucket.led_elsewhere_error(to)) {
        return;
    }
    let settled = projector.run_exclusively(Arc::clone(bucket), move |_, bucket| {
        let _gate = bucket.gate.close();
        // The gate of a bucket that has ended is closed with groups that wait.
        match bucket.has_ended() {
            true => Err(bucket.led_elsewhere_error(to)),
            false => Ok(()),
        }
    });
    let is_settled = matches!(tokio::time::timeout(SETTLE_WAIT, settled).await, Ok(Ok(())));
    let revision = bucket.links.copies().map(|copies| copies.revision);
    let Some(revision) =
        revision.filter(|_| is_settled && bucket.links.has_all_groups(to, Instant::now()))
    else {
        bucket.resume();
        return;
    };
    let (id, begun) = (bucket.info.id, Instant::now());
    loop {
        let asked = request_change(projector, id, (revision, CopiesChange::Give(to)));
        let answer = tokio::time::timeout_at(begun + GIVE_WAIT, asked).await;
        match answer.unwrap_or_else(|_| Err(Error::unavailable("no coordinator has answered"))) {
            Ok(Some(copies)) if copies.leader != projector.node_id() => {
                // This projector no longer leads, and the bucket is replaced. A copy that became the leader by this very change is
                // complete.
                if copies.leader == to && copies.revision == revision + 1 {
                    projector.roles.record_compared(id, copies.term);
                }
                return;
            }
            // The configuration has changed meanwhile, and this projector still leads.
            Ok(_) => break,
            Err(error) => {
                tracing::debug!(%id, %error, "giving a bucket away has no answer yet");
                if is_change_outdated(projector, id, revision) {
                    break;
                }
                if begun.elapsed() >= GIVE_WAIT {
                    // The other copies may reach the coordinators. This copy reopens the bucket, if it still leads then.
                    bucket.end_leading(bucket.led_elsewhere_error(to));
                    return projector.roles.wake_watchers();
                }
                tokio::time::sleep(LOOK).await;
            }
        }
    }
    // If another copy leads, the bucket ends, and stays so.
    match projector.copies_of(id).is_none_or(|newest| newest.leader == projector.node_id()) {
        true => bucket.resume(),
        false => bucket.end_leading(bucket.led_elsewhere_error(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [usize; 5] = [0, 1, 3, 2, 0];

    fn of(wanted: u8, in_sync: &[u64], joining: &[u64], move_to: Option<u64>) -> Copies {
        let nodes = |numbers: &[u64]| numbers.iter().copied().map(NodeId).collect();
        let (in_sync, joining) = (nodes(in_sync), nodes(joining));
        let move_to = move_to.map(NodeId);
        Copies { wanted, in_sync, joining, move_to, ..Copies::single(NodeId(1)) }
    }

    fn goes(copies: &Copies) -> Option<u64> {
        surplus_copy(copies, |node| COUNTS[node.0 as usize]).map(|node| node.0)
    }

    #[test]
    fn surplus_copy_leaves_the_fullest_projector() {
        assert_eq!(goes(&of(2, &[1, 2], &[], None)), None, "all are wanted");
        assert_eq!(goes(&of(2, &[1, 2, 3], &[], None)), Some(2));
        assert_eq!(goes(&of(1, &[1, 4], &[], None)), Some(4), "also the last follower");
        assert_eq!(goes(&of(1, &[1], &[], None)), None, "the leader stays");
        assert_eq!(goes(&of(1, &[1, 2], &[3], None)), None, "a joining copy goes first");
    }

    #[test]
    fn a_bucket_that_moves_has_one_copy_more_and_its_target_stays() {
        assert_eq!(goes(&of(1, &[1, 2], &[], Some(2))), None);
        assert_eq!(goes(&of(1, &[1, 2, 3], &[], Some(2))), Some(3));
        assert_eq!(goes(&of(1, &[1, 3], &[2], Some(2))), Some(3));
    }
}
