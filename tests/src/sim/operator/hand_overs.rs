//! Hand-overs in the simulation: vbuckets of the pushed bucket move between projectors under faults. At the end no transfer
//! is in progress, and every mutation of the producer is stored.

use std::time::Duration;

use proto::model::assignment::VbucketAssignment;
use proto::model::ids::{NodeId, VbucketId};
use proto::rpc::command::{CancelHandOver, Command, HandOver};
use tokio::time::{Instant, sleep, timeout};

use crate::sim::client::session::Session;
use crate::sim::client::workload::STATEMENT;
use crate::sim::cluster::hosts::{PROJECTORS, VBUCKETS};
use crate::sim::producer::Producer;
use crate::sim::{Shared, violation};

/// The time limit after the faults until all hand-overs must end and all mutations must be pushed.
const SETTLE: Duration = Duration::from_secs(30);

/// Begins hand-overs, or cancels those in progress.
pub(super) async fn step(random: &mut fastrand::Rng, session: &Session, summary: &Shared) {
    let bucket = session.bucket.id;
    let command = match random.u8(..5) {
        0 => Command::CancelHandOver(CancelHandOver { bucket }),
        _ => {
            let some = random.usize(1..4);
            let vbuckets = (0..some).map(|_| VbucketId(random.u16(..VBUCKETS))).collect();
            let to = NodeId(PROJECTORS[random.usize(..PROJECTORS.len())]);
            Command::HandOver(HandOver { bucket, vbuckets, to })
        }
    };
    // A vbucket that is being transferred elsewhere is refused.
    if let Ok(Ok(_)) = timeout(STATEMENT, session.backend.command(command.into())).await {
        summary.lock().expect("not poisoned").hand_overs_asked += 1;
    }
}

/// Checks after the faults that no hand-over is in progress and that all mutations are stored.
pub(in crate::sim) async fn settle(producer: &Producer, session: &Session, summary: &Shared) {
    let deadline = Instant::now() + SETTLE;
    // This check is made before the producer can push the missing mutations again.
    if let Some(what) = lacks(producer, session, deadline).await {
        return violation(summary, what);
    }
    // Otherwise the producer would learn of a projector's loss only with its next push.
    producer.doubt_all();
    loop {
        let pushed = producer.push_all(&session.backend, &session.bucket).await;
        let (rests, assignment) = at_rest(session);
        if rests && matches!(pushed, Ok(true)) {
            return;
        }
        if Instant::now() > deadline {
            let what = format!(
                "{SETTLE:?} after the last fault: pushed {pushed:?}, assignment {assignment:?}"
            );
            return violation(summary, what);
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Returns true if no hand-over is in progress, and the owners of all vbuckets.
fn at_rest(session: &Session) -> (bool, Option<VbucketAssignment>) {
    let catalog = session.router.catalog();
    let assignment = catalog
        .buckets
        .get(&session.bucket.id)
        .map(|bucket| VbucketAssignment::clone(&bucket.assignment));
    (assignment.as_ref().is_some_and(|assignment| assignment.transfers().is_empty()), assignment)
}

/// Waits until no vbucket is being handed over; returns a text about acknowledged mutations that no
/// owner has.
async fn lacks(producer: &Producer, session: &Session, deadline: Instant) -> Option<String> {
    let id = session.bucket.id;
    loop {
        if at_rest(session).0
            && let Ok(source) = session.backend.source(&session.bucket)
            && let Ok(Ok(there)) = timeout(STATEMENT, source.history(id)).await
        {
            return producer.lacks(&there);
        }
        if Instant::now() > deadline {
            return Some(format!("{SETTLE:?} after the last fault nobody tells what was taken"));
        }
        sleep(Duration::from_millis(100)).await;
    }
}
