//! The commits of the sessions, and the checks of their answers.

use std::sync::Arc;
use std::time::Duration;

use proto::rpc::api::{Write, WriteReply};
use proto::{Error, ErrorCode};
use sextant::sql::transactions::commit::{Part, commit_all};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::attempts::Fate;
use super::background::Ended;
use super::lane::Lane;
use super::run::{Open, Pair};
use super::session::{Life, Mortal, Stage};
use crate::sim::client::workload::{STATEMENT, now};
use crate::sim::judge::statements::Outcome;
use crate::sim::transactions::commit::{is_refusal, writes};
use crate::sim::transactions::running::Running;
use crate::sim::violation;

/// The maximum lifetime, in milliseconds, of a session that is lost at a random time of its commit.
const LOST_MS_MAX: u64 = 60;

impl Pair {
    /// Starts the commit of a transaction.
    pub(super) fn commit(&mut self, Open { mut parts, .. }: Open) {
        let changed: Vec<usize> =
            (0..2).filter(|at| parts[*at].changes.own_changes().is_some()).collect();
        let Some(decider) = changed.first().copied() else { return };
        let attempt = self.attempts.begin(&parts);
        let life = self.draw_life();
        let mut asked = Vec::new();
        for at in changed {
            let part = &mut parts[at];
            // From now on, its scans may be refused.
            part.leave(Default::default());
            let mut writes: Vec<Write> = writes(&part.left);
            if at != decider {
                // Prepared changes are in the order of ids.
                writes.sort_by(|one, other| one.id.cmp(&other.id));
            }
            self.lanes[at].work.statements.resume(part.statement, &writes);
            let (changes, life) = (Arc::clone(&part.changes), life.clone());
            asked
                .push(Part { changes: Arc::new(Mortal { changes, life }), snapshot: part.epoch() });
        }
        let lost_after = match self.random.u8(..6) {
            0 => Duration::from_millis(self.random.u64(..LOST_MS_MAX)),
            _ => STATEMENT,
        };
        let (began, lost) = (now(), life.lost);
        let lost = async move {
            tokio::select! { biased; () = lost.notified() => {}, () = sleep(lost_after) => {} }
        };
        self.background.commit(Box::pin(async move {
            let answer = tokio::select! {
                biased;
                answer = commit_all(asked) => Some(answer),
                () = lost => None,
            };
            Ended { attempt, parts, answer, began }
        }));
    }

    fn draw_life(&mut self) -> Life {
        let ends_at = match self.random.u8(..16) {
            0 => Some(Stage::Begun),
            1 | 2 => Some(Stage::Prepared),
            3 | 4 => Some(Stage::Decided),
            5 => Some(Stage::Finished),
            _ => None,
        };
        Life { ends_at, lost: Arc::new(Notify::new()), stages: Arc::clone(&self.stages) }
    }

    /// Judges the commits that have ended.
    pub(super) fn conclude(&mut self) {
        for ended in self.background.take_ended() {
            self.conclude_one(ended);
        }
    }

    fn conclude_one(&mut self, Ended { attempt, parts, answer, began }: Ended) {
        let is_joint = self.attempts.is_joint(attempt);
        // The outcome of a statement in a bucket that has not answered.
        let mut unanswered = Outcome::InDoubt;
        let (fate, replies) = match answer {
            Some(Ok(replies)) => {
                self.count(|summary| summary.joint_commits += u64::from(is_joint));
                (Fate::Acknowledged, replies)
            }
            Some(Err(error)) if error.code.refuses_commit() => {
                self.judge_conflict(&parts, &error);
                // A deciding bucket that has lost the commit answers that it never existed.
                if self.is_lossy() {
                    (Fate::InDoubt, Vec::new())
                } else {
                    unanswered = Outcome::of_conflict(&error);
                    (Fate::Refused, Vec::new())
                }
            }
            Some(Err(error)) => {
                if error.code != ErrorCode::InDoubt {
                    self.judge_error("a commit", &error, began);
                }
                (Fate::InDoubt, Vec::new())
            }
            None => {
                self.count(|summary| summary.sessions_lost += u64::from(is_joint));
                (Fate::InDoubt, Vec::new())
            }
        };
        self.attempts.end(attempt, fate);
        for (lane, part) in self.lanes.iter_mut().zip(&parts) {
            let Lane { work, session } = lane;
            let mine = |reply: &&WriteReply| reply.position.bucket == session.bucket.id;
            match replies.iter().find(mine) {
                Some(reply) => {
                    work.committed(session, part, reply);
                    session.note_writes(std::slice::from_ref(&reply.position));
                }
                None if part.changes.own_changes().is_some() => {
                    work.statements.end(part.statement, unanswered.clone());
                }
                None => {}
            }
        }
    }

    /// Checks that a commit is refused only if another writer has changed one of its documents, or
    /// if a projector has lost the transaction.
    fn judge_conflict(&self, parts: &[Running; 2], error: &Error) {
        let is_conflict = is_refusal(error);
        self.count(|summary| match is_conflict {
            true => summary.conflicts += 1,
            false => summary.transactions_lost += 1,
        });
        let mut both = self.lanes.iter().zip(parts);
        if is_conflict && !both.any(|(lane, part)| lane.work.may_conflict(part)) {
            let text = format!("a commit over two buckets was refused without a reason: {error}");
            violation(&self.summary, text);
        }
    }
}
