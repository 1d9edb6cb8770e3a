//! Waits until an epoch covers a position in a bucket's history (the requests `request_plus` and
//! `at_plus`). If no published epoch covers the position, the leader registers the waiter and
//! promotes an epoch as soon as SYNC reaches the position. Every member answers from its own copy
//! of the state.
//!
//! A position outside of the known history may lie on a branch that is not known yet. The source
//! is queried before the position is reported as lost.

use std::time::Duration;

use proto::model::cut::{Cut, Position};
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, Epoch};
use proto::rpc::api::CoveringEpochs;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};

use crate::leader::driver::member::Member;
use crate::leader::driver::queries::query_history;

/// The interval between two searches for reasons that prevent an epoch.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The interval between two checks while the coordinator may be an older copy of itself.
const DOUBT_LOOK_EVERY: Duration = Duration::from_millis(20);

/// A caller's registration at the leader as a waiter for an epoch. Its drop, at the end of the
/// call, removes the registration.
pub(super) struct EpochWaiter<'a>(pub(super) &'a Member, pub(super) u64);

impl Drop for EpochWaiter<'_> {
    fn drop(&mut self) {
        if let Some(leader) = self.0.leader().as_mut() {
            leader.stability.remove_waiter(self.1);
        }
    }
}

/// The facts that the caller knows: the fingerprint of the history that the source must have, if
/// any, and an epoch that has been published.
type CallerHistory = (Option<u64>, Epoch);

/// Returns the oldest and the newest published epoch that cover a cut; `None` if there is none,
/// or if this member lacks a published epoch. Returns an error for an unknown bucket, which a
/// member that may lag does not pass on.
fn covering_epochs(
    member: &Member,
    bucket: BucketId,
    cut: &Cut,
    (history, at_least): CallerHistory,
) -> Result<Option<CoveringEpochs>> {
    let view = member.replica.view();
    let Some(bucket) = view.state.bucket(bucket) else {
        let what = format!("bucket {bucket} does not exist");
        return Err(Error::new(ErrorCode::Unknown, what));
    };
    if cut.vbuckets() > bucket.info.vbuckets {
        return Err(Error::new(
            ErrorCode::InvalidParameter,
            format!(
                "the position has {} vbuckets, bucket \"{}\" has {}",
                cut.vbuckets(),
                bucket.info.name,
                bucket.info.vbuckets
            ),
        ));
    }
    // No epoch is readable while a rollback is about to remove the newest ones.
    let Some(from) = bucket.info.readable_from() else { return Ok(None) };
    let newest = bucket.epochs.last().epoch;
    if newest < at_least || !is_known(bucket.logs, cut, history) {
        return Ok(None);
    }
    let oldest = bucket.epochs.covering(cut, from);
    Ok(oldest.map(|oldest| CoveringEpochs { oldest: oldest.epoch, newest }))
}

/// Checks that each position of a cut is in the bucket's history. A position outside of it may be
/// on a branch that is not known yet, so the source is queried.
async fn check_in_history(
    member: &Member,
    bucket: BucketId,
    cut: &Cut,
    wanted: Option<u64>,
) -> Result<()> {
    {
        let view = member.replica.view();
        let Some(known) = view.state.bucket(bucket) else { return Ok(()) };
        if is_known(known.logs, cut, wanted) {
            return Ok(());
        }
    }
    // Without an answer of the source, the position may be valid.
    let Ok(history) = query_history(member, bucket).await else {
        return Ok(());
    };
    if wanted.is_some_and(|wanted| wanted != history.logs.fingerprint()) {
        let bucket = member.replica.view().state.bucket_text(bucket);
        let what = format!("the history of {bucket} has changed");
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("repeat the request with a new position"));
    }
    let lost = cut.iter().find(|(vbucket, at)| !history.logs.includes(*vbucket, *at));
    let Some((vbucket, Position { vbuuid, seqno })) = lost else { return Ok(()) };
    let bucket = member.replica.view().state.bucket_text(bucket);
    let what = format!(
        "vbucket {vbucket} of {bucket}: {:x}/{seqno} is not in the source's history",
        vbuuid.0
    );
    Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
        "the source has lost the position in a failover, or the position belongs to another bucket",
    ))
}

/// Waits for an epoch that covers a cut, and returns the oldest and the newest of these epochs.
pub(super) async fn wait_for_epoch(
    member: &Member,
    bucket: BucketId,
    cut: Cut,
    (history, at_least): CallerHistory,
    timeout_ms: u64,
) -> Result<CoveringEpochs> {
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    let mut changes = member.replica.changes();
    let mut role = member.raft.role();
    loop {
        changes.mark_unchanged();
        role.mark_unchanged();
        let known = covering_epochs(member, bucket, &cut, (history, at_least));
        let is_doubted = member.may_be_older_copy();
        if let (Ok(Some(covering)), false) = (&known, is_doubted) {
            return Ok(*covering);
        }
        if let Some(leader) = member.forward_to()? {
            let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
            return leader.epoch_covering(bucket, cut, history, at_least, left_ms).await;
        }
        known?;
        let check = check_in_history(member, bucket, &cut, history);
        if let Ok(checked) = timeout_at(deadline, check).await {
            checked?;
        }
        let want = member.as_leader(|leader| {
            leader.check_no_lasting_evidence(&member.replica.view().state)?;
            Ok(leader.stability.add_waiter(bucket, cut.clone()))
        })?;
        let _want = EpochWaiter(member, want);
        member.wake.notify_one();
        let change = async {
            tokio::select! {
                biased;
                changed = changes.changed() => changed.is_ok(),
                changed = role.changed() => changed.is_ok(),
            }
        };
        let look_every = if is_doubted { DOUBT_LOOK_EVERY } else { LOOK_EVERY };
        let look = deadline.min(Instant::now() + look_every);
        match timeout_at(look, change).await {
            Ok(true) => {}
            Ok(false) => return Err(Error::unavailable("this coordinator member has stopped")),
            Err(_) if look < deadline => {}
            Err(_) => {
                let bucket = member.replica.view().state.bucket_text(bucket);
                let what = format!("no epoch of {bucket} covered the position in time");
                return Err(Error::new(ErrorCode::Cancelled, what)
                    .with_hint("the source or its projector may be behind; try again"));
            }
        }
    }
}

/// Returns true if the known history contains the cut, and is the one that the caller requests.
fn is_known(logs: &FailoverLogs, cut: &Cut, history: Option<u64>) -> bool {
    history.is_none_or(|wanted| wanted == logs.fingerprint()) && logs.includes_cut(cut)
}
