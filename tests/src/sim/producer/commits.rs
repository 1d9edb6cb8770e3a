//! The transactions of the simulated producer, and the judge of cuts.
//!
//! In a quarter of the seeds some of the producer's changes are a transaction. Its commit may be sent to the owners of some vbuckets
//! only, as by a producer that crashes; the rest is then pushed as plain mutations, at once or after a while. From the first accepted part
//! on no epoch may have a part and lack another one. A loss of history may halve a commit, so nothing is judged after the first one.
//!
//! The owner of a plain mutation does not know that it is a part. So an epoch may have it until the commit was reported to the leader. A
//! commit of which a part was pushed as plain mutations before that is not judged. Other tasks of the client push too, also while a commit
//! is in progress.
//!
//! The draws have a separate generator, so that all other draws stay the same.

use std::time::Duration;

use proto::model::cut::{Cut, Position};
use proto::model::ids::{ProducerTransactionId, Seqno, VbucketId};
use proto::model::pushed_commit::{PushedCommit, PushedPart};
use tokio::time::Instant;

/// The transactions of a producer.
pub(super) struct Commits {
    /// `None` in seeds without transactions.
    random: Option<fastrand::Rng>,
    last: u64,
    /// The commit in progress, unless it is known already that it is not judged.
    begun: Option<PushedCommit>,
    /// The commits of which some part was accepted; `None` once history was lost.
    judged: Option<Vec<Accepted>>,
    first_split: Option<String>,
    /// True until the last faults are over.
    pauses: bool,
    /// The vbuckets to which the last commit was not sent, and the time until which nothing is.
    held: Option<(Vec<VbucketId>, Instant)>,
}

/// A commit of which some part was accepted.
struct Accepted {
    commit: PushedCommit,
    /// The vbuckets to whose owners it was sent.
    sent: Vec<VbucketId>,
}

impl Commits {
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x7c01);
        let has_any = random.u8(..4) == 0;
        let judged = Some(Vec::new());
        Self {
            random: has_any.then_some(random),
            last: 0,
            begun: None,
            judged,
            first_split: None,
            pauses: true,
            held: None,
        }
    }

    /// The commit of changes at these positions, and the vbuckets to which it is sent; `None` if they are no transaction.
    pub fn draw(
        &mut self,
        places: &[(VbucketId, Position)],
    ) -> Option<(PushedCommit, Vec<VbucketId>)> {
        let random = self.random.as_mut()?;
        let mut parts: Vec<PushedPart> = Vec::new();
        for (vbucket, end) in places {
            match parts.iter_mut().find(|part| part.vbucket == *vbucket) {
                Some(part) => part.end = *end,
                None => parts.push(PushedPart {
                    vbucket: *vbucket,
                    after: Seqno(end.seqno.0 - 1),
                    end: *end,
                }),
            }
        }
        if parts.len() < 2 || random.bool() {
            return None;
        }
        self.last += 1;
        let commit = PushedCommit::new(ProducerTransactionId(self.last), parts).ok()?;
        let all = commit.parts.iter().map(|part| part.vbucket);
        let first = random.usize(..commit.parts.len());
        let sent = match random.u8(..3) {
            0 => all.skip(first).take(1).collect(),
            _ => all.collect(),
        };
        Some((commit, sent))
    }

    /// Records that a commit is sent from now on.
    pub fn begin(&mut self, commit: &PushedCommit) {
        self.begun = Some(commit.clone());
    }

    /// Records that the parts of the commit in progress were accepted in some vbuckets.
    pub fn accepted(&mut self, sent: &[VbucketId]) {
        let Some(commit) = self.begun.take() else { return };
        if let Some(judged) = &mut self.judged {
            judged.push(Accepted { commit, sent: sent.to_vec() });
        }
    }

    /// Records that plain mutations of a vbucket up to a seqno are pushed from now on.
    pub fn note_plain(
        &mut self,
        vbucket: VbucketId,
        end: Seqno,
        is_heard_of: impl Fn(ProducerTransactionId) -> bool,
    ) {
        let has_none = |commit: &PushedCommit| {
            let part = commit.part_of(vbucket).filter(|part| part.after < end);
            part.is_none() || is_heard_of(commit.transaction)
        };
        let is_whole =
            |Accepted { commit, sent }: &Accepted| sent.contains(&vbucket) || has_none(commit);
        self.judged.iter_mut().for_each(|judged| judged.retain(is_whole));
        self.begun = self.begun.take().filter(has_none);
    }

    /// Begins a pause of the producer after a commit that was sent to these vbuckets only. Meanwhile its owners may restart, or give
    /// vbuckets away.
    pub fn pause(&mut self, commit: &PushedCommit, sent: &[VbucketId]) {
        let Some(random) = &mut self.random else { return };
        let rest = commit.parts.iter().map(|part| part.vbucket);
        let rest: Vec<_> = rest.filter(|vbucket| !sent.contains(vbucket)).collect();
        if !rest.is_empty() && random.bool() && self.pauses {
            self.held =
                Some((rest, Instant::now() + Duration::from_millis(random.u64(100..1_500))));
        }
    }

    /// Ends the last pause; false if there was none.
    pub fn end_pauses(&mut self) -> bool {
        self.pauses = false;
        self.held.take().is_some()
    }

    /// True if the producer sends nothing to a vbucket now.
    pub fn is_held(&self, vbucket: VbucketId) -> bool {
        let held = self.held.as_ref().filter(|(_, until)| Instant::now() < *until);
        held.is_some_and(|(held, _)| held.contains(&vbucket))
    }

    /// Records a loss of history.
    pub fn lost(&mut self) {
        self.judged = None;
    }

    /// Records the description of a commit that an epoch splits.
    pub fn note_split(&mut self, split: Option<String>) {
        self.first_split = self.first_split.take().or(split);
    }

    /// The first split that was recorded.
    pub fn first_split(&self) -> Option<&String> {
        self.first_split.as_ref()
    }

    /// Describes a commit that a cut splits. `has` returns whether a place is before another one in a vbucket.
    pub fn split(
        &self,
        cut: &Cut,
        has: impl Fn(VbucketId, Position, Position) -> bool,
    ) -> Option<String> {
        let has_end = |part: &PushedPart| has(part.vbucket, part.end, cut.get(part.vbucket));
        let mut judged = self.judged.iter().flatten().map(|accepted| &accepted.commit);
        let split = judged.find(|commit| {
            commit.parts.iter().any(|part| cut.get(part.vbucket).seqno > part.after)
                && !commit.parts.iter().all(has_end)
        });
        split.map(|commit| format!("an epoch at {cut:?} has a part of {commit:?}"))
    }
}
