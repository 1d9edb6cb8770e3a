//! Fixes moments ([`proto::model::moment`]), and returns the epochs in force at them.
//!
//! A moment is fixed by a round of queries. A round queries all projectors for the ends of the
//! histories of their buckets (*places*). It passes new places to the leader's plans as SYNC
//! does, registers a waiter for each, and ends when epochs cover all of them. The index that the
//! leader has applied then is the moment. The places themselves prove that the moment covers all
//! writes that were acknowledged before, so a leader that was deposed meanwhile gives no wrong
//! answer.
//!
//! A bucket that does not answer in time is *held*: the round ends without a new epoch of it, and
//! later rounds do not wait for it before it answers again. So a damaged bucket or a lost
//! projector delays one round and not every transaction.
//!
//! A bucket in which a commit of a producer has been open for over a second is held as well. Only
//! the bucket of the transaction's first read is waited for as long as its caller waits.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future;
use proto::model::ids::{BucketId, Epoch, NodeId};
use proto::model::moment::Moment;
use proto::rpc::api::{FixedMoment, KnownPlace, MOMENT_HOLD_MS, Places};
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, sleep, timeout_at};

use super::covering::EpochWaiter;
use crate::leader::driver::member::Member;
use crate::leader::driver::rounds::MomentRoundResult;
use crate::leader::epochs::moment_round::{
    WantedPlace, WantedProgress, covers_owned_vbuckets, known_places,
};
use crate::raft::not_leader;

/// The time limit for the answer of a projector whose buckets all failed to answer in an earlier
/// round.
const HELD_WAIT: Duration = Duration::from_millis(20);
/// The pause before a projector is queried again for the buckets missing in its answer.
const ASK_PAUSE: Duration = Duration::from_millis(20);
/// The time limit of a round for epochs that cover the answers: longer than an election.
const COVER_WAIT: Duration = Duration::from_secs(5);
/// The interval between two checks of the places that no epoch covers yet.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// The time limit for a member to apply the log up to a moment that another member has fixed.
const APPLY_WAIT: Duration = Duration::from_secs(2);

/// Runs rounds that fix moments, one after another, each when callers wait for one.
pub(super) async fn run_rounds(member: Arc<Member>) -> Infallible {
    let mut held = BTreeSet::new();
    loop {
        let number = member.rounds.begin().await;
        let ended = run_round(&member, &held).await;
        if let Ok(end) = &ended {
            for bucket in end.held.difference(&held) {
                tracing::warn!(%bucket, "transactions read an older epoch of a bucket that does not answer");
            }
            held.clone_from(&end.held);
        }
        member.rounds.end(number, ended);
    }
}

/// Runs one round. The buckets in `held` did not answer in earlier rounds, so the round does not
/// wait for them.
async fn run_round(member: &Member, held: &BTreeSet<BucketId>) -> Result<MomentRoundResult> {
    let now_ms = member.now_ms();
    let (known, silent) = member.as_leader(|leader| {
        let view = member.replica.view();
        Ok((known_places(&view.state), leader.silent_nodes(&view.state, now_ms)))
    })?;
    let give_up = Instant::now() + Duration::from_millis(MOMENT_HOLD_MS);
    let of_each = known.into_iter().map(|(projector, open)| {
        let is_silent = silent.contains(&projector);
        let awaited = |known: &&KnownPlace| !is_silent && !held.contains(&known.bucket);
        let awaited = open.iter().filter(awaited).map(|known| known.bucket).collect();
        let asked = ProjectorQueries { member, projector, open, awaited, wanted: Vec::new() };
        asked.query_until_covered(give_up)
    });
    let held = future::try_join_all(of_each).await?.into_iter().flatten().collect();
    Ok(MomentRoundResult { at: member.replica.view().state.position(), held })
}

/// The queries of a round to one projector, and the state of its buckets.
struct ProjectorQueries<'a> {
    member: &'a Member,
    projector: NodeId,
    /// The buckets whose place the projector has not returned yet.
    open: Vec<KnownPlace>,
    /// The buckets whose answer the round waits for.
    awaited: BTreeSet<BucketId>,
    /// The places that epochs must cover, each with its waiter at the leader.
    wanted: Vec<(WantedPlace, EpochWaiter<'a>)>,
}

impl<'a> ProjectorQueries<'a> {
    /// Queries the projector until all awaited buckets have answered, and waits until epochs
    /// cover the answers. Returns the buckets that did not answer or that no epoch covers.
    async fn query_until_covered(mut self, give_up: Instant) -> Result<BTreeSet<BucketId>> {
        self.query_places(give_up).await?;
        let unanswered = self.open.iter().map(|known| known.bucket).collect::<Vec<_>>();
        let mut held = self.wait_covered(Instant::now()).await?;
        held.extend(unanswered);
        Ok(held)
    }

    fn is_awaited(&self) -> bool {
        self.open.iter().any(|known| self.awaited.contains(&known.bucket))
    }

    /// Queries the projector until all awaited buckets have answered or the time is over.
    async fn query_places(&mut self, give_up: Instant) -> Result<()> {
        let Some(node) = self.member.replica.view().state.node(self.projector).cloned() else {
            return Ok(());
        };
        let projector = self.member.directory.projector(&node);
        loop {
            let until = if self.is_awaited() { give_up } else { Instant::now() + HELD_WAIT };
            match timeout_at(until, projector.places(self.open.clone())).await {
                Ok(Ok(places)) => self.record(places)?,
                Ok(Err(error)) => {
                    tracing::debug!(%error, node = %self.projector, "a projector told no places");
                }
                Err(_) => return Ok(()),
            }
            if !self.is_awaited() || Instant::now() + ASK_PAUSE >= give_up {
                return Ok(());
            }
            sleep(ASK_PAUSE).await;
        }
    }

    /// Passes the places in an answer to the leader's plans, and registers a waiter for each.
    fn record(&mut self, places: Places) -> Result<()> {
        let Places { changed, unanswered } = places;
        let now_ms = self.member.now_ms();
        let member = self.member;
        member.as_leader(|leader| {
            let view = member.replica.view();
            let mut open: BTreeSet<BucketId> = unanswered.into_iter().collect();
            for (place, report) in changed {
                let bucket = report.bucket;
                if !covers_owned_vbuckets(&view.state, self.projector, (bucket, &place.kept)) {
                    open.insert(bucket);
                }
                let wanted = WantedPlace::new(&view.state, bucket, place);
                // A SYNC may have overtaken the answer, and a place before the newest epoch would look like a loss.
                if wanted.progress(&view.state) == WantedProgress::Covered {
                    continue;
                }
                let cut = wanted.place.durable.clone();
                let waiter = leader.stability.add_waiter(bucket, cut);
                if let Err(error) =
                    leader.record_sync_report(&view.state, self.projector, report, now_ms)
                {
                    tracing::debug!(%bucket, %error, "a place does not fit");
                }
                self.wanted.push((wanted, EpochWaiter(member, waiter)));
            }
            self.open.retain(|known| open.contains(&known.bucket));
            if leader.has_suspects() {
                member.suspect_found.notify_one();
            }
            Ok(())
        })?;
        member.wake.notify_one();
        Ok(())
    }

    /// Waits until epochs cover all places, or until the time is over. The time is short if the
    /// round awaits none of the remaining buckets. Returns the buckets that no epoch covers.
    async fn wait_covered(&mut self, began: Instant) -> Result<BTreeSet<BucketId>> {
        let member = self.member;
        let mut changes = member.replica.changes();
        let mut role = member.raft.role();
        let mut held = BTreeSet::new();
        loop {
            changes.mark_unchanged();
            role.mark_unchanged();
            self.remove_covered_places(&mut held);
            if self.wanted.is_empty() {
                return Ok(held);
            }
            if member.leader().is_none() {
                return Err(not_leader(None));
            }
            let is_awaited = |of: &(WantedPlace, _)| self.awaited.contains(&of.0.bucket);
            let wait = if self.wanted.iter().any(is_awaited) { COVER_WAIT } else { HELD_WAIT };
            if Instant::now() >= began + wait {
                held.extend(self.wanted.iter().map(|(wanted, _)| wanted.bucket));
                return Ok(held);
            }
            let has_stopped = tokio::select! {
                biased;
                changed = changes.changed() => changed.is_err(),
                changed = role.changed() => changed.is_err(),
                () = sleep(LOOK_EVERY) => false,
            };
            // A watch that has ended reports changes at once, again and again.
            if has_stopped {
                return Err(not_leader(None));
            }
        }
    }

    /// Removes the places that epochs cover. Also removes the places of buckets that are being
    /// rolled back, and adds these buckets to `held`.
    fn remove_covered_places(&mut self, held: &mut BTreeSet<BucketId>) {
        let progress: Vec<_> = {
            let view = self.member.replica.view();
            self.wanted.iter().map(|(wanted, _)| wanted.progress(&view.state)).collect()
        };
        let mut suspects = BTreeSet::new();
        // A waiter that ends locks the leader's memory, which is never done under the state's lock.
        for (waiting, progress) in std::mem::take(&mut self.wanted).into_iter().zip(progress) {
            let bucket = waiting.0.bucket;
            match progress {
                WantedProgress::Covered => continue,
                WantedProgress::Frozen => {
                    held.insert(bucket);
                    continue;
                }
                WantedProgress::WaitsForHistory => {
                    suspects.insert(bucket);
                }
                WantedProgress::Waits => {}
            }
            self.wanted.push(waiting);
        }
        if let Some(leader) = self.member.leader().as_mut()
            && !suspects.is_empty()
        {
            leader.schedule_queries(suspects);
            self.member.suspect_found.notify_one();
        }
    }
}

/// Fixes a moment, and returns it with the epoch that is in force at it in a bucket.
pub(super) async fn fix_moment(
    member: &Member,
    bucket: BucketId,
    at_least: Epoch,
    timeout_ms: u64,
) -> Result<FixedMoment> {
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    loop {
        if let Some(leader) = member.forward_to()? {
            let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
            return leader.moment(bucket, at_least, left_ms).await;
        }
        member
            .as_leader(|leader| leader.check_no_lasting_evidence(&member.replica.view().state))?;
        let ended = timeout_at(deadline, member.rounds.next()).await;
        let MomentRoundResult { at, held } =
            ended.map_err(|_| no_moment_error(member, bucket))??;
        if !held.contains(&bucket) && !member.may_be_older_copy() {
            let found = member.replica.view().state.epoch_at(bucket, &Moment::at(at))?;
            if let Some(epoch) = found.filter(|epoch| at_least <= *epoch) {
                return Ok(FixedMoment { at, epoch });
            }
        }
        if Instant::now() + ASK_PAUSE >= deadline {
            return Err(no_moment_error(member, bucket));
        }
        sleep(ASK_PAUSE).await;
    }
}

/// Returns the error for a moment that could not be fixed in time.
fn no_moment_error(member: &Member, bucket: BucketId) -> Error {
    let bucket = member.replica.view().state.bucket_text(bucket);
    Error::unavailable(format!("{bucket}: no epoch covers its end within the time-out"))
        .with_hint("the source or its projector may be behind; try again")
}

/// Returns the epoch in force in a bucket at a moment.
pub(super) async fn epoch_at(member: &Member, bucket: BucketId, moment: Moment) -> Result<Epoch> {
    let deadline = Instant::now() + APPLY_WAIT;
    let mut changes = member.replica.changes();
    loop {
        changes.mark_unchanged();
        let found = member.replica.view().state.epoch_at(bucket, &moment);
        match (found, member.forward_to()) {
            (Ok(Some(epoch)), _) => return Ok(epoch),
            (Err(error), _) if error.code != ErrorCode::Unknown => return Err(error),
            // A member that lags may not know a new bucket.
            (_, Ok(Some(leader))) => return leader.epoch_at(bucket, moment).await,
            (Err(error), _) => return Err(error),
            (_, Err(error)) => return Err(error),
            (Ok(None), Ok(None)) => {}
        }
        if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
            let bucket = member.replica.view().state.bucket_text(bucket);
            let what = format!("{bucket}: the moment is ahead of the leading coordinator");
            return Err(Error::unavailable(what).with_hint("try again"));
        }
    }
}
