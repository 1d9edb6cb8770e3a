//! The leader's side of the configuration: it requests from the coordinators that the set of copies
//! shrinks or grows, removes a surplus copy, and hands leadership to another copy for a move.

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

/// The interval between two checks of the copies.
const LOOK: Duration = Duration::from_millis(50);
/// The time for which a leader that hands leadership over waits for the groups in flight.
const SETTLE_WAIT: Duration = Duration::from_secs(3);

/// The time limit for the coordinators' answer to a leader that hands leadership over; the bucket is not served
/// meanwhile.
const GIVE_WAIT: Duration = Duration::from_secs(3);

/// Requests a change of the configuration from the coordinators. The answer is final: the
/// configuration afterwards, or `None` if they refuse the command. After an error the change may
/// still be made, unless a newer configuration is known ([`is_void`]).
pub async fn ask(
    projector: &Projector,
    bucket: BucketId,
    (revision, change): (u64, CopiesChange),
) -> Result<Option<Copies>> {
    let command = Command::ChangeCopies(ChangeCopies { bucket, revision, change });
    match projector.directory.coordinator().propose(command.into()).await?.outcome {
        Outcome::Copies(copies) => {
            projector.learn_copies(bucket, &copies);
            Ok(Some(copies))
        }
        _ => Ok(None),
    }
}

/// Returns true if a change that was requested for this revision can no longer be made.
pub fn is_void(projector: &Projector, bucket: BucketId, revision: u64) -> bool {
    projector.copies_of(bucket).is_none_or(|newest| newest.revision > revision)
}

/// Maintains the set of copies of a bucket that this projector leads. Runs until the task is
/// cancelled or the bucket is retired.
pub async fn lead(projector: Arc<Projector>, bucket: Arc<Bucket>) {
    let id = bucket.info.id;
    while !bucket.has_ended() {
        tokio::time::sleep(LOOK).await;
        // Before the coordinators have compared the bucket, its followers may have more.
        if !bucket.is_led() {
            continue;
        }
        if let Some(newest) = projector.copies_of(id) {
            bucket.links.lead(&newest, projector.me(), Instant::now());
        }
        if bucket.gate.has_ready() {
            show(&projector, &bucket);
        }
        let planned = bucket.links.plan(Instant::now());
        if let Some(question) = planned.or_else(|| lets_go(&projector, &bucket))
            && let Err(error) = change(&projector, &bucket, question).await
        {
            // The change may still be made. The links keep a growth or a shrink as a question until it is answered.
            tracing::debug!(%id, %error, "a change of copies has no answer yet");
            continue;
        }
        if let Some(to) = successor(&bucket) {
            give_place(&projector, &bucket, to).await;
        }
    }
}

async fn change(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    question: (u64, CopiesChange),
) -> Result<()> {
    let (id, node) = (bucket.info.id, question.1.node());
    if matches!(question.1, CopiesChange::Shrink(_)) && plant::is(Plant::SilentCopyIgnored) {
        bucket.links.forget(node);
        show(projector, bucket);
    }
    if let Some(copies) = ask(projector, id, question).await? {
        bucket.links.lead(&copies, projector.me(), Instant::now());
        tracing::info!(%id, change = ?question.1, in_sync = ?copies.in_sync, "the copies have changed");
    }
    bucket.links.answered(node);
    show(projector, bucket);
    Ok(())
}

/// Makes the groups visible that no longer wait for another copy.
fn show(projector: &Arc<Projector>, bucket: &Arc<Bucket>) {
    let at = Arc::clone(bucket);
    projector.env.spawn_blocking("projector groups", TaskPolicy::EndProcess, move || {
        at.gate.show_waiting();
        at.wake();
    });
}

/// Returns the request that removes a surplus copy, with the revision that it is made for; `None`
/// if there is no surplus copy.
fn lets_go(projector: &Projector, bucket: &Bucket) -> Option<(u64, CopiesChange)> {
    let copies = bucket.links.copies()?;
    let catalog = projector.catalog.borrow().clone();
    let count = |node: NodeId| {
        let others = catalog.iter().flat_map(|catalog| catalog.copies.values());
        others.filter(|copies| copies.role(node) != CopyRole::None).count()
    };
    Some((copies.revision, CopiesChange::Leave(surplus(&copies, count)?)))
}

/// Returns the copy in sync that is least needed; `None` unless there are too many copies and none
/// of them is joining. `count` returns the number of copies on a projector.
fn surplus(copies: &Copies, count: impl Fn(NodeId) -> usize) -> Option<NodeId> {
    let is_target = |node: &NodeId| copies.move_to == Some(*node);
    if !copies.has_surplus() || !copies.joining.iter().all(is_target) {
        return None;
    }
    let may_go = copies.followers().filter(|node| !is_target(node));
    may_go.max_by_key(|node| (count(*node), *node))
}

/// Returns the copy to which leadership should be handed and that is ready for it; `None` if there
/// is none.
fn successor(bucket: &Bucket) -> Option<NodeId> {
    let copies = bucket.links.copies()?;
    copies
        .move_to
        .filter(|to| copies.in_sync.contains(to) && bucket.links.has_few(*to, Instant::now()))
}

/// Hands leadership to another copy: refuses further mutations, waits until all copies have all
/// earlier ones, and requests the change. Writers get a retryable error meanwhile, so they lose
/// nothing.
async fn give_place(projector: &Arc<Projector>, bucket: &Arc<Bucket>, to: NodeId) {
    if !bucket.pause(bucket.led_elsewhere(to)) {
        return;
    }
    let settled = projector.exclusively(Arc::clone(bucket), move |_, bucket| {
        let _gate = bucket.gate.close();
        // The gate of a bucket that has ended is closed with groups that wait.
        match bucket.has_ended() {
            true => Err(bucket.led_elsewhere(to)),
            false => Ok(()),
        }
    });
    let is_settled = matches!(tokio::time::timeout(SETTLE_WAIT, settled).await, Ok(Ok(())));
    let revision = bucket.links.copies().map(|copies| copies.revision);
    let Some(revision) =
        revision.filter(|_| is_settled && bucket.links.has_all(to, Instant::now()))
    else {
        bucket.resume();
        return;
    };
    let (id, begun) = (bucket.info.id, Instant::now());
    loop {
        let asked = ask(projector, id, (revision, CopiesChange::Give(to)));
        let answer = tokio::time::timeout_at(begun + GIVE_WAIT, asked).await;
        match answer.unwrap_or_else(|_| Err(Error::unavailable("no coordinator has answered"))) {
            Ok(Some(copies)) if copies.leader != projector.me() => {
                // This projector no longer leads, and the bucket is replaced. A copy that became the leader by this very change is
                // complete.
                if copies.leader == to && copies.revision == revision + 1 {
                    projector.roles.compared(id, copies.term);
                }
                return;
            }
            // The configuration has changed meanwhile, and this projector still leads.
            Ok(_) => break,
            Err(error) => {
                tracing::debug!(%id, %error, "giving a bucket away has no answer yet");
                if is_void(projector, id, revision) {
                    break;
                }
                if begun.elapsed() >= GIVE_WAIT {
                    // The other copies may reach the coordinators. This copy reopens the bucket, if it still leads then.
                    bucket.end_leading(bucket.led_elsewhere(to));
                    return projector.roles.look_again();
                }
                tokio::time::sleep(LOOK).await;
            }
        }
    }
    // If another copy leads, the bucket ends, and stays so.
    match projector.copies_of(id).is_none_or(|newest| newest.leader == projector.me()) {
        true => bucket.resume(),
        false => bucket.end_leading(bucket.led_elsewhere(to)),
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
        surplus(copies, |node| COUNTS[node.0 as usize]).map(|node| node.0)
    }

    #[test]
    fn a_surplus_copy_in_sync_goes_from_the_projector_with_most_copies() {
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
