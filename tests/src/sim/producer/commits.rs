//! The transactions of the simulated producer, and the judge of cuts.
//!
//! In a quarter of the seeds some of the producer's changes form a transaction. Its commit may be
//! sent to the owners of only some vbuckets, as by a producer that crashes; the other mutations are
//! then pushed as plain ones, at once or later. After the first accepted part, each epoch must
//! contain all parts of the commit or none. A loss of history may remove a part of a commit, so
//! nothing is judged after the first loss.
//!
//! The owner of a plain mutation does not know that it belongs to a commit, so an epoch may contain
//! it before the commit is reported to the leader. A commit with a part that was pushed as plain
//! mutations before the report is therefore not judged. Other tasks of the client push too, even
//! while a commit is in progress.
//!
//! The draws have a separate generator, so that they do not change other draws.

use std::time::Duration;

use proto::model::cut::{Cut, Position};
use proto::model::ids::{ProducerTransactionId, Seqno, VbucketId};
use proto::model::pushed_commit::{PushedCommit, PushedPart};
use tokio::time::Instant;

/// The transactions of a producer.
pub(super) struct Commits {
    /// The generator of transactions; `None` in seeds without transactions.
    random: Option<fastrand::Rng>,
    last: u64,
    /// The commit in progress, unless it is known that it will not be judged.
    begun: Option<PushedCommit>,
    /// The commits of which a part was accepted; `None` after a loss of history.
    judged: Option<Vec<Accepted>>,
    first_split: Option<String>,
    /// True until the end of the faults.
    pauses: bool,
    /// The vbuckets to which the last commit was not sent, and the time until which nothing is sent
    /// to them.
    held: Option<(Vec<VbucketId>, Instant)>,
}

/// A commit of which a part was accepted.
struct Accepted {
    commit: PushedCommit,
    /// The vbuckets whose owners it was sent to.
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

    /// Returns the commit of changes at these positions, and the vbuckets to which it is sent;
    /// `None` if the changes are not a transaction.
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

    /// Records that a commit is about to be sent.
    pub fn begin(&mut self, commit: &PushedCommit) {
        self.begun = Some(commit.clone());
    }

    /// Records that the parts of the commit in progress for these vbuckets were accepted.
    pub fn accepted(&mut self, sent: &[VbucketId]) {
        let Some(commit) = self.begun.take() else { return };
        if let Some(judged) = &mut self.judged {
            judged.push(Accepted { commit, sent: sent.to_vec() });
        }
    }

    /// Records that plain mutations of a vbucket up to a seqno are about to be pushed.
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

    /// Starts a pause of the producer after a commit that was sent only to these vbuckets. During
    /// the pause the owners may restart or hand vbuckets over.
    pub fn pause(&mut self, commit: &PushedCommit, sent: &[VbucketId]) {
        let Some(random) = &mut self.random else { return };
        let rest = commit.parts.iter().map(|part| part.vbucket);
        let rest: Vec<_> = rest.filter(|vbucket| !sent.contains(vbucket)).collect();
        if !rest.is_empty() && random.bool() && self.pauses {
            self.held =
                Some((rest, Instant::now() + Duration::from_millis(random.u64(100..1_500))));
        }
    }

    /// Ends the last pause; false if there is none.
    pub fn end_pauses(&mut self) -> bool {
        self.pauses = false;
        self.held.take().is_some()
    }

    /// True if the producer sends nothing to a vbucket at present.
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

    /// Returns the first recorded split.
    pub fn first_split(&self) -> Option<&String> {
        self.first_split.as_ref()
    }

    /// Returns a text about a commit that a cut splits. `has` returns true if one position is at or
    /// before another in a vbucket.
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
