//! The second stage of a follower's session: it receives group after group.
//!
//! A large group becomes durable slowly, so the follower reports meanwhile that it is *busy*
//! ([`super::busy`]). Later groups wait until the document table has the large one, so its time is
//! counted from its last piece.
//!
//! A small group needs few thread switches, which were a large part of its time. The follower syncs
//! it on the thread that has received it (`Env::blocking_briefly`), and the thread that the sync
//! wakes makes it visible (`Gate::show_small`).

use proto::rpc::api::{CopiedGroup, CopyAnswer, CopyQuestion, GroupPiece};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::busy::Busy;
use super::follower::{Follower, LeaderCalls, SessionEnd, unexpected};
use super::pieces::Assembly;
use crate::source::groups::link::busy_for;

/// Returns the number of the last of `groups` groups, the first of which has the number `first`.
fn last_of(first: u64, groups: usize) -> Result<u64> {
    let behind = (groups as u64).saturating_sub(1);
    first.checked_add(behind).ok_or_else(|| {
        let what = format!("the leader sends {groups} groups from number {first} on");
        Error::new(ErrorCode::OutOfOrder, what)
    })
}

/// A session whose follower has all mutations that the leader had at the session's beginning.
pub struct FollowerSession<'f> {
    /// The follower of the session.
    pub follower: &'f Follower,
    /// The client of the follower's leader.
    pub leader: LeaderCalls,
    /// The number of the session.
    pub session: u64,
    /// The number of the last group that is durable at the follower; zero at first.
    pub durable: u64,
    /// The number of the last answer received; zero at first.
    pub heard: u64,
    /// The time until which the follower may be busy with a large group.
    pub busy_until: Instant,
}

impl FollowerSession<'_> {
    /// Receives groups until an error or the end of the session.
    pub async fn follow(mut self) -> Result<SessionEnd> {
        let mut large: Option<Assembly> = None;
        loop {
            let Self { session, durable, heard, .. } = self;
            let held = large.as_ref().map_or(0, Assembly::held);
            let question = CopyQuestion::Next { session, durable, heard, held };
            match self.leader.ask(question).await? {
                CopyAnswer::Groups { answer, first, groups } => {
                    self.note_heard(answer);
                    if !groups.is_empty() {
                        self.check_follows(first)?;
                        large = None;
                        let last = last_of(first, groups.len())?;
                        self.append(groups, last).await?;
                    }
                }
                CopyAnswer::Piece { answer, group, piece } => {
                    self.note_heard(answer);
                    self.check_follows(group)?;
                    let assembly = large.take().unwrap_or_else(|| Assembly::new(group));
                    large = self.take_piece(assembly, group, piece).await?;
                }
                _ => return Err(unexpected()),
            }
        }
    }

    fn note_heard(&mut self, answer: u64) {
        self.follower.projector.roles.heard(self.follower.bucket.info.id);
        self.heard = answer;
    }

    /// Returns an error if a group is not the next one. The number of the first group is accepted.
    fn check_follows(&self, first: u64) -> Result<()> {
        let durable = self.durable;
        if durable == 0 || durable.checked_add(1) == Some(first) {
            return Ok(());
        }
        let what = format!("group {first} does not follow group {durable}");
        Err(Error::new(ErrorCode::OutOfOrder, what))
    }

    /// Adds a piece of a large group. Returns the group if it is incomplete; `None` once the group
    /// is complete and durable.
    async fn take_piece(
        &mut self,
        mut large: Assembly,
        group: u64,
        piece: GroupPiece,
    ) -> Result<Option<Assembly>> {
        let bytes_max = self.follower.projector.config.copy_step_bytes_max;
        if !large.add(group, piece, bytes_max)? {
            return Ok(Some(large));
        }
        tracing::debug!(group, changes = large.held(), "took a group in pieces");
        self.busy_until = Instant::now() + busy_for(large.bytes());
        self.append(vec![large.into_group()], group).await?;
        Ok(None)
    }

    /// Makes groups durable; `last` is the number of the last one.
    async fn append(&mut self, groups: Vec<CopiedGroup>, last: u64) -> Result<()> {
        let Self { follower, leader, session, heard, busy_until, .. } = self;
        // The log may write prepared changes again with any group.
        let again = busy_for(follower.bucket.prepared_bytes());
        let until = (*busy_until).max(Instant::now() + again);
        let busy = Busy { follower, leader, session: *session, until };
        busy.during(heard, follower.append(groups)).await?;
        self.durable = last;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_groups_have_an_end() {
        assert_eq!(last_of(7, 3).unwrap(), 9);
        assert_eq!(last_of(u64::MAX, 1).unwrap(), u64::MAX);
        assert_eq!(last_of(u64::MAX, 2).unwrap_err().code, ErrorCode::OutOfOrder);
    }
}
