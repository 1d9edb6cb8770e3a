//! The source of a pushed bucket: a producer that numbers its own mutations and pushes them to the
//! owners of their vbuckets, while vbuckets move between projectors.
//!
//! The producer behaves like real feeds: it repeats mutations whose acknowledgment it did not
//! receive, sends some twice, and fails over to a shorter history, whose new branch the projectors
//! learn with the next push. Scans are judged by the producer's log, including the logs of lost
//! histories.
//!
//! After an error the producer queries the vbucket's history and continues from there: first the
//! oldest branch that the projector does not know, then the mutations up to the beginning of the
//! next one. If the projector cannot rewind that far because its log was purged, the producer
//! pushes everything again on a branch from the beginning.
//!
//! A projector may restart from an older copy of its disk, without mutations that it had
//! acknowledged. The producer learns of this loss when its next push is refused because of a gap.
//! Until then only the judge knows the loss.
//!
//! Some changes are transactions ([`commits`]).
//!
//! A producer that queries and pushes again would repair any loss of a projector. Each answer is
//! therefore checked first: a projector has every acknowledged mutation, or the judge knows the
//! reason for its absence.

mod commits;
mod feed;
mod pushes;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use projector::testing::Mutation;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::BucketInfo;
use proto::model::cut::{Cut, Position};
use proto::model::history::{SourceHistory, begin_branch, branch_of};
use proto::model::ids::{Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::model::pushed_commit::PushedCommit;
use proto::rpc::api::{PushMutation, PushedCommitRequest, PushedStep, TransactionPush};
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode};
use tokio::time::timeout;

use super::judge::truth::Readable;
use crate::sim::cluster::client::ClientBackend;
use commits::Commits;
use feed::{Feed, Log};

/// The time limit of a push.
const PUSH: Duration = Duration::from_secs(10);

/// True if a projector needs all mutations of a vbucket again, because its log was purged.
fn cannot_go_back(error: &Error) -> bool {
    let hint = error.hint.as_ref();
    error.code == ErrorCode::OutOfOrder && hint.is_some_and(|hint| hint.contains("at seqno 0"))
}

/// The simulated producer.
pub struct Producer {
    feeds: Mutex<Vec<Feed>>,
    random: Mutex<fastrand::Rng>,
    commits: Mutex<Commits>,
}

impl Producer {
    /// Returns a producer of this many vbuckets.
    pub fn new(seed: u64, vbuckets: u16) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x9054);
        let feed = |random: &mut fastrand::Rng| Feed {
            branches: vec![(Vbuuid(random.u64(1..)), 0)],
            ..Feed::default()
        };
        let feeds = (0..vbuckets).map(|_| feed(&mut random)).collect();
        let commits = Mutex::new(Commits::new(seed));
        Self { feeds: Mutex::new(feeds), random: Mutex::new(random), commits }
    }

    fn feeds(&self) -> MutexGuard<'_, Vec<Feed>> {
        self.feeds.lock().expect("not poisoned")
    }

    fn random(&self) -> MutexGuard<'_, fastrand::Rng> {
        self.random.lock().expect("not poisoned")
    }

    /// Numbers changes, appends them to the log, and returns the position of each.
    pub fn change(&self, changes: Vec<(String, Option<String>)>) -> Vec<(VbucketId, Position)> {
        let mut feeds = self.feeds();
        let vbuckets = feeds.len() as u16;
        let number = |(id, document): (String, Option<String>)| {
            let vbucket = vbucket_of(&id, vbuckets);
            let feed = &mut feeds[usize::from(vbucket.0)];
            let seqno = feed.log.len() as u64 + 1;
            let kind =
                if document.is_some() { MutationKind::Upsert } else { MutationKind::Deletion };
            let document = document.unwrap_or_default();
            let place = (vbucket, Seqno(seqno));
            feed.log.push(Arc::new(Mutation::new(place, id.into(), kind, document.into())));
            (vbucket, feed.position(seqno))
        };
        changes.into_iter().map(number).collect()
    }

    fn commits(&self) -> MutexGuard<'_, Commits> {
        self.commits.lock().expect("not poisoned")
    }

    /// Records a transaction of which an epoch contains only a part.
    pub fn note_split(&self, cut: &Cut) {
        let mut commits = self.commits();
        let split = commits.split(cut, |vbucket, at, end| self.is_before(vbucket, at, end));
        commits.note_split(split);
    }

    /// Returns a text about the first transaction that an epoch has split.
    pub fn split(&self) -> Option<String> {
        self.commits().first_split().cloned()
    }

    /// Sends the changes that were numbered last as a transaction, completely or in part, if the
    /// projectors have all earlier mutations. Mutations that are not known to be stored afterwards
    /// are pushed as plain ones.
    pub async fn transact(
        &self,
        backend: &ClientBackend,
        bucket: &Arc<BucketInfo>,
        places: &[(VbucketId, Position)],
    ) {
        let Some((commit, sent)) = self.commits().draw(places) else { return };
        let Some(mutations) = self.inside(&commit) else { return };
        let losses = self.losses();
        let (transaction, owner) = (commit.transaction, "the producer".to_owned());
        let push = TransactionPush { bucket: bucket.id, transaction, owner, mutations };
        let wanted: VbucketSet = sent.iter().copied().collect();
        let committed = async {
            backend.writer(bucket)?.push_in(push).await?;
            if sent.len() == commit.parts.len() {
                return backend.writer(bucket)?.commit_pushed(commit.clone()).await;
            }
            let (commit, step) = (commit.clone(), PushedStep::Commit);
            let request = PushedCommitRequest { bucket: bucket.id, commit, wanted, step };
            backend.source(bucket)?.commit_pushed(request).await
        };
        self.commits().begin(&commit);
        let is_accepted = matches!(timeout(PUSH, committed).await, Ok(Ok(_)));
        if is_accepted && self.losses() == losses {
            self.commits().accepted(&sent);
            self.commits().pause(&commit, &sent);
        }
        for part in &commit.parts {
            self.feeds()[usize::from(part.vbucket.0)].unsure |= sent.contains(&part.vbucket);
        }
    }

    /// Returns the mutations of a transaction; `None` if an earlier mutation is not known to be
    /// stored.
    fn inside(&self, commit: &PushedCommit) -> Option<Vec<PushMutation>> {
        let feeds = self.feeds();
        let mut mutations = Vec::new();
        for part in &commit.parts {
            let feed = &feeds[usize::from(part.vbucket.0)];
            let is_next = !feed.unsure
                && feed.taken as u64 == part.after.0
                && feed.position(part.end.seqno.0) == part.end;
            let own = feed.log.get(feed.taken..part.end.seqno.0 as usize).filter(|_| is_next)?;
            mutations.extend((1..).zip(own).map(|(n, mutation)| PushMutation {
                vbucket: part.vbucket,
                position: Position { vbuuid: Vbuuid(0), seqno: Seqno(n) },
                id: mutation.id.to_string(),
                kind: mutation.kind,
                document: mutation.document.clone(),
            }));
        }
        Some(mutations)
    }

    /// Returns the number of mutations.
    pub fn mutations(&self) -> usize {
        self.feeds().iter().map(|feed| feed.log.len()).sum()
    }

    /// Fails over to a copy of the source that lacks the end of some vbuckets; returns the number of lost mutations.
    pub fn fail_over(&self) -> u64 {
        self.commits().lost();
        let (mut feeds, mut random) = (self.feeds(), self.random());
        let deep = random.u8(..6) == 0;
        let mut lost = 0;
        for feed in feeds.iter_mut() {
            let end = feed.log.len() as u64;
            let kept = match random.u8(..4) {
                _ if deep => random.u64(end / 4..=end),
                0 | 1 => end - random.u64(..=end.min(12)),
                _ => continue,
            };
            feed.past.push((feed.branches.clone(), feed.log.clone()));
            feed.log.truncate(kept as usize);
            begin_branch(&mut feed.branches, Vbuuid(random.u64(1..)), Seqno(kept));
            feed.taken = feed.taken.min(kept as usize);
            feed.unsure = true;
            lost += end - kept;
        }
        lost
    }

    /// Records that a projector has lost the end of a vbucket. The producer is not told.
    pub fn lose_taken(&self, vbucket: VbucketId, end: Seqno) {
        self.commits().lost();
        let feed = &mut self.feeds()[usize::from(vbucket.0)];
        for behind in [&mut feed.lost_behind, &mut feed.lacks_behind] {
            *behind = Some(behind.map_or(end.0, |behind| behind.min(end.0)));
        }
        feed.losses += 1;
    }

    /// Returns a text about acknowledged mutations that are absent without a known reason. The
    /// answer `there` must date from a time without hand-overs.
    pub fn lacks(&self, there: &SourceHistory) -> Option<String> {
        let feeds = self.feeds();
        (0..)
            .map(VbucketId)
            .zip(feeds.iter())
            .find_map(|(v, feed)| feed.lacks(v, feed.acknowledged(), there))
    }

    /// Returns the number of losses at projectors by vbucket.
    pub fn losses(&self) -> Vec<u64> {
        self.feeds().iter().map(|feed| feed.losses).collect()
    }

    /// Lets the next push query the projectors for their state first.
    pub fn doubt_all(&self) {
        self.feeds().iter_mut().for_each(|feed| feed.unsure = true);
    }

    /// Returns the end of each vbucket.
    pub fn ends(&self) -> Vec<(VbucketId, Position)> {
        let feeds = self.feeds();
        let ends = (0..).map(VbucketId).zip(feeds.iter());
        ends.map(|(vbucket, feed)| (vbucket, feed.position(feed.log.len() as u64))).collect()
    }

    /// Prepares to push a whole vbucket again, because the projector cannot rewind to the place
    /// where the branches divide.
    fn begin_again(&self, vbucket: VbucketId) {
        self.commits().lost();
        let branch = Vbuuid(self.random().u64(1..));
        let feed = &mut self.feeds()[usize::from(vbucket.0)];
        let before = std::mem::replace(&mut feed.branches, vec![(branch, 0)]);
        feed.past.push((before, feed.log.clone()));
        (feed.taken, feed.unsure) = (0, true);
    }

    /// True if a mutation is known to be stored.
    pub fn is_taken(&self, vbucket: VbucketId, position: Position) -> bool {
        let feed = &self.feeds()[usize::from(vbucket.0)];
        !feed.unsure
            && feed.taken as u64 >= position.seqno.0
            && feed.position(position.seqno.0) == position
    }

    /// Returns the present log of a vbucket, and the number of mutations that are known to be
    /// stored. `None` if the projector may be in an earlier history or lack mutations that it had.
    pub fn readable(&self, vbucket: VbucketId) -> Option<Readable> {
        let feed = &self.feeds()[usize::from(vbucket.0)];
        let is_known = !feed.unsure && feed.lost_behind.is_none() && feed.lacks_behind.is_none();
        let lost = feed.past.len() as u64 + feed.losses;
        is_known.then(|| Readable { logs: vec![feed.log.clone()], from: feed.taken, lost })
    }

    /// Returns the mutations of a vbucket up to a position, in the present or a lost history.
    pub fn log_at(&self, vbucket: VbucketId, position: Position) -> Option<Log> {
        let feeds = self.feeds();
        let (_, log) = feeds[usize::from(vbucket.0)].history_with(position)?;
        Some(log[..position.seqno.0 as usize].to_vec())
    }

    /// Returns the mutations of a vbucket up to a position in the present history, without those
    /// that the projector lacks.
    pub fn present_log(&self, vbucket: VbucketId, position: Position) -> Option<Log> {
        let feeds = self.feeds();
        let feed = &feeds[usize::from(vbucket.0)];
        if feed.lost_behind.is_some_and(|behind| position.seqno.0 > behind) {
            return None;
        }
        let log = feed.log.get(..position.seqno.0 as usize)?;
        (feed.position(position.seqno.0).vbuuid == position.vbuuid).then(|| log.to_vec())
    }

    /// True if a position is at or before `end` in the history that contains `end`.
    pub fn is_before(&self, vbucket: VbucketId, position: Position, end: Position) -> bool {
        let feeds = self.feeds();
        let history = feeds[usize::from(vbucket.0)].history_with(end);
        history.is_some_and(|(branches, _)| {
            position.seqno <= end.seqno && branch_of(branches, position.seqno) == position.vbuuid
        })
    }
}
