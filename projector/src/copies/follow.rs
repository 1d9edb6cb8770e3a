//! The task of a follower: it follows the leader of the newest configuration, and requests
//! leadership when the leader is silent.

use std::sync::Arc;
use std::time::Duration;

use proto::model::copies::{Copies, CopiesChange, CopyRole};
use proto::rpc::api::COPY_GRACE_MS;
use tokio::time::Instant;

use super::follower::{Follower, SessionEnd};
use super::lead::request_change;
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// The pause after a session that failed.
const RETRY: Duration = Duration::from_millis(50);
/// The time for which a follower keeps querying its leader after the coordinators have confirmed
/// that leader.
const CONFIRMED: Duration = Duration::from_millis(500);
/// The time without an answer of the leader after which a follower requests leadership.
const GRACE: Duration = Duration::from_millis(COPY_GRACE_MS);
/// The time after which a process may request leadership although it has never compared its copy
/// with a leader's. Its directory may be an older copy, so another copy gets time to return
/// first. Before the process leads, the coordinators compare its copy with the last epoch.
const UNCOMPARED_WAIT: Duration = Duration::from_secs(30);
/// The time after which a copy requests leadership although it lacks mutations that the newest
/// stability timestamp covers. The coordinators would not let it serve the bucket
/// (`crate::follow`), and another copy, which may be complete, could no longer lead. If no other
/// copy returns, an operator may then accept the loss.
const LACKING_WAIT: Duration = Duration::from_secs(10 * 60);

/// Follows the leader of a bucket until the task is cancelled, or until this projector leads the
/// bucket.
pub async fn follow(projector: Arc<Projector>, bucket: Arc<Bucket>) {
    let id = bucket.info.id;
    let follower = Follower { projector: Arc::clone(&projector), bucket };
    let mut changes = projector.roles.watch();
    let (mut not_before, mut term) = (Instant::now(), None);
    while !follower.bucket.is_removed() {
        changes.borrow_and_update();
        let Some(copies) = projector.copies_of(id) else { return };
        let role = copies.role(projector.node_id());
        if role == CopyRole::Leader {
            return;
        }
        // A new leader must start before it answers, and gets as much time for that as a leader that has just answered.
        if term.replace(copies.term) != Some(copies.term) {
            projector.roles.record_answer(id);
        }
        follower.bucket.set_refusal(follower.bucket.led_elsewhere_error(copies.leader));
        let session = async {
            match role {
                CopyRole::None => follower.compare_with_leader(&copies).await,
                _ => follower.run_session(&copies).await,
            }
        };
        let other = async {
            while projector
                .copies_of(id)
                .is_some_and(|now| can_session_continue(&now, &copies, &projector))
            {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = other => {}
            () = wait_to_request_leadership(&follower, not_before) => {
                // The session is over before the question, so this projector grants and acknowledges nothing from now on.
                request_leadership(&projector, &follower).await;
                not_before = Instant::now() + CONFIRMED;
            }
            ended = session => {
                match ended {
                    Ok(SessionEnd::LeaderLacks) => {
                        tracing::warn!(%id, leader = %copies.leader, "the leader lacks what this copy has");
                        request_leadership(&projector, &follower).await;
                    }
                    Err(error) => {
                        tracing::debug!(%id, leader = %copies.leader, %error, "a copy's session has ended");
                    }
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Returns true if a session with the leader can continue after the configuration has changed
/// from `one` to `other`.
fn can_session_continue(one: &Copies, other: &Copies, projector: &Projector) -> bool {
    let has_part = |copies: &Copies| copies.role(projector.node_id()) != CopyRole::None;
    one.term == other.term && has_part(one) == has_part(other)
}

/// Waits until this projector may request leadership: its leader has been silent for long enough.
async fn wait_to_request_leadership(follower: &Follower, not_before: Instant) {
    let Follower { projector, bucket } = follower;
    let mut changes = projector.roles.watch();
    loop {
        changes.borrow_and_update();
        let copies = projector.copies_of(bucket.info.id);
        let is_in_sync =
            copies.is_some_and(|now| now.role(projector.node_id()) == CopyRole::InSync);
        let at = is_in_sync.then(|| {
            let heard = projector.roles.last_answer_at(bucket.info.id) + GRACE;
            let compared = match projector.roles.compared_in(bucket.info.id) {
                Some(_) => heard,
                None if bucket.has_newest_epoch() => projector.roles.began + UNCOMPARED_WAIT,
                None => projector.roles.began + LACKING_WAIT,
            };
            heard.max(compared).max(not_before)
        });
        if at.is_some_and(|at| Instant::now() >= at) {
            return;
        }
        let ends = async {
            match at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = ends => {}
            changed = changes.changed() => if changed.is_err() { std::future::pending::<()>().await },
        }
    }
}

/// Requests leadership from the coordinators until they answer. The request is repeated because,
/// without the answer, it is unknown whether this projector leads.
async fn request_leadership(projector: &Arc<Projector>, follower: &Follower) {
    let (id, me) = (follower.bucket.info.id, projector.node_id());
    let in_sync = || projector.copies_of(id).filter(|now| now.role(me) == CopyRole::InSync);
    while let Some(copies) = in_sync() {
        let revision = copies.revision;
        match request_change(projector, id, (revision, CopiesChange::Promote(me))).await {
            Ok(Some(now)) if now.leader == me => {
                tracing::warn!(%id, term = now.term, "the leader is silent: this copy takes over");
                return;
            }
            // Another copy leads, or something else has changed, or the bucket was dropped.
            Ok(_) => return,
            Err(error) => {
                tracing::debug!(%id, %error, "asking to lead has no answer yet");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}
