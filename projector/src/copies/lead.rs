//! The leader's side of the configuration: it asks the coordinators to shrink and grow the set of copies, and gives its place to
//! another copy for a move.

use std::sync::Arc;
use std::time::Duration;

use proto::env::TaskPolicy;
use proto::model::copies::{Copies, CopiesChange};
use proto::model::ids::{BucketId, NodeId};
use proto::plant::{self, Plant};
use proto::rpc::command::{Command, CommandRequest, Outcome};
use proto::{Error, Result};
use tokio::time::Instant;

use crate::projector::Projector;
use crate::source::bucket::Bucket;

/// The interval of looks at the copies.
const LOOK: Duration = Duration::from_millis(50);
/// How long a leader that gives its place away waits for the groups on their way.
const SETTLE_WAIT: Duration = Duration::from_secs(3);

/// Asks the coordinators for a change. The answer is definite: the configuration as it is then.
pub async fn ask(
    projector: &Projector,
    bucket: BucketId,
    (revision, change): (u64, CopiesChange),
) -> Result<Copies> {
    let command = Command::ChangeCopies { bucket, revision, change };
    let request = CommandRequest { request: None, command };
    match projector.directory.coordinator().propose(request).await? {
        Outcome::Copies(copies) => {
            projector.learn_copies(bucket, &copies);
            Ok(copies)
        }
        Outcome::Refused(error) => Err(error),
        _ => Err(Error::internal("an answer of another kind")),
    }
}

/// Looks after the copies of a bucket that this projector leads. Runs until cancelled, or until the bucket is retired.
pub async fn lead(projector: Arc<Projector>, bucket: Arc<Bucket>) {
    let id = bucket.info.id;
    // A question whose answer was lost may still take effect, so it is asked until it is answered.
    let mut asked = None;
    while !bucket.is_removed() {
        tokio::time::sleep(LOOK).await;
        // Before the term has begun, with its branches, nobody may follow.
        if let Some(newest) = projector.copies_of(id)
            && bucket.links.copies().is_some()
        {
            let before = bucket.links.copies();
            bucket.links.lead(&newest, projector.me(), Instant::now());
            if before != bucket.links.copies() {
                show(&projector, &bucket);
            }
        }
        asked = asked.or_else(|| bucket.links.plan(Instant::now()));
        if let Some(question) = asked {
            match change(&projector, &bucket, question).await {
                Ok(()) => asked = None,
                Err(error) => {
                    tracing::debug!(%id, %error, "a change of copies has no answer yet");
                    if !error.is_retry() {
                        // It is refused for good.
                        asked = None;
                        bucket.links.not_grown(question.1.node());
                    }
                    continue;
                }
            }
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
    let copies = ask(projector, id, question).await?;
    bucket.links.lead(&copies, projector.me(), Instant::now());
    if let CopiesChange::Grow(node) = question.1 {
        bucket.links.not_grown(node);
    }
    tracing::info!(%id, change = ?question.1, in_sync = ?copies.in_sync, "the copies have changed");
    show(projector, bucket);
    Ok(())
}

/// Shows the groups that wait for nobody any more.
fn show(projector: &Arc<Projector>, bucket: &Arc<Bucket>) {
    let at = Arc::clone(bucket);
    projector.env.spawn_blocking("projector groups", TaskPolicy::EndProcess, move || {
        at.gate.show_waiting();
        at.wake();
    });
}

/// The copy that shall lead, once it can.
fn successor(bucket: &Bucket) -> Option<NodeId> {
    let copies = bucket.links.copies()?;
    copies.move_to.filter(|to| copies.in_sync.contains(to) && bucket.links.has_few(*to))
}

/// Gives the place to another copy: takes no more mutations, waits until all copies have all of them, and asks for the promotion. Writers
/// that come meanwhile are told to try again, so they lose nothing.
async fn give_place(projector: &Arc<Projector>, bucket: &Arc<Bucket>, to: NodeId) {
    if bucket.check_open().is_err() {
        return;
    }
    bucket.refuse(bucket.led_elsewhere(to));
    let settled = projector.exclusively(Arc::clone(bucket), |_, bucket| {
        let _gate = bucket.gate.close();
        Ok(())
    });
    let is_settled = matches!(tokio::time::timeout(SETTLE_WAIT, settled).await, Ok(Ok(())));
    let revision = bucket.links.copies().map(|copies| copies.revision);
    let Some(revision) = revision.filter(|_| is_settled && bucket.links.has_all(to)) else {
        bucket.open();
        return;
    };
    loop {
        match ask(projector, bucket.info.id, (revision, CopiesChange::Promote(to))).await {
            // It leads no more: the bucket is replaced.
            Ok(copies) if copies.leader != projector.me() => return,
            // The configuration has changed meanwhile, and this projector still leads.
            Ok(_) => break,
            Err(error) if error.is_retry() => tokio::time::sleep(LOOK).await,
            Err(_) => break,
        }
    }
    bucket.open();
}
