//! The second stage of a follower's session: the follower receives each new group of mutations
//! from the leader, and makes it durable. The first stage ([`super::fill`]) has stored all
//! earlier mutations.
//!
//! A large group becomes durable slowly, so the follower reports meanwhile that it is *busy*
//! ([`super::busy`]). Later groups wait until the document table has the large one, so the time
//! of the large group is counted from the arrival of its last piece.
//!
//! A small group is handled with few thread switches, because these would take a large part of
//! its time. The thread that has received the group also syncs it (`Env::blocking_briefly`), and
//! the thread that the sync wakes makes it visible (`Gate::show_small`).

use proto::rpc::api::{CopiedGroup, CopyAnswer, CopyRequestKind, GroupChunk};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::busy::BusyFollower;
use super::follower::{Follower, LeaderCalls, SessionEnd, unexpected_answer_error};
use super::pieces::GroupAssembly;
use crate::source::groups::link::busy_for;

/// Returns the number of the last of `groups` groups, the first of which has the number `first`.
fn last_group_number(first: u64, groups: usize) -> Result<u64> {
    let behind = (groups as u64).saturating_sub(1);
    first.checked_add(behind).ok_or_else(|| {
        let what = format!("the leader sends {groups} groups from number {first} on");
        Error::new(ErrorCode::OutOfOrder, what)
    })
}

/// A session of a follower that has all mutations from before the session, and receives the later
/// groups.
pub struct FollowerSession<'f> {
    /// The follower of the session.
    pub follower: &'f Follower,
    /// The client of the follower's leader.
    pub leader: LeaderCalls,
    /// The number of the session at the leader.
    pub session: u64,
    /// The number of the last group that is durable at the follower; zero at first.
    pub durable: u64,
    /// The number of the last answer received from the leader; zero at first.
    pub heard: u64,
    /// The time until which the follower may report that it is busy with a large group.
    pub busy_until: Instant,
}

impl FollowerSession<'_> {
    /// Receives and stores groups until the session ends or fails.
    pub async fn follow(mut self) -> Result<SessionEnd> {
        let mut large: Option<GroupAssembly> = None;
        loop {
            let Self { session, durable, heard, .. } = self;
            let held = large.as_ref().map_or(0, GroupAssembly::received_changes);
            let question = CopyRequestKind::Next { session, durable, heard, held };
            match self.leader.send_request(question).await? {
                CopyAnswer::Groups { answer, first, groups } => {
                    self.record_answer(answer);
                    if !groups.is_empty() {
                        self.check_group_order(first)?;
                        large = None;
                        let last = last_group_number(first, groups.len())?;
                        self.append(groups, last).await?;
                    }
                }
                CopyAnswer::Piece { answer, group, piece } => {
                    self.record_answer(answer);
                    self.check_group_order(group)?;
                    let assembly = large.take().unwrap_or_else(|| GroupAssembly::new(group));
                    large = self.receive_piece(assembly, group, piece).await?;
                }
                _ => return Err(unexpected_answer_error()),
            }
        }
    }

    /// Records the number of an answer received from the leader.
    fn record_answer(&mut self, answer: u64) {
        self.follower.projector.roles.record_answer(self.follower.bucket.info.id);
        self.heard = answer;
    }

    /// Returns an error if a received group does not directly follow the last durable one. The
    /// first group of a session may have any number.
    fn check_group_order(&self, first: u64) -> Result<()> {
        let durable = self.durable;
        if durable == 0 || durable.checked_add(1) == Some(first) {
            return Ok(());
        }
        let what = format!("group {first} does not follow group {durable}");
        Err(Error::new(ErrorCode::OutOfOrder, what))
    }

    /// Adds a piece of a large group to the group `large`. Returns the group while it is
    /// incomplete, and `None` once it is complete and durable.
    async fn receive_piece(
        &mut self,
        mut large: GroupAssembly,
        group: u64,
        piece: GroupChunk,
    ) -> Result<Option<GroupAssembly>> {
        let bytes_max = self.follower.projector.config.copy_step_bytes_max;
        if !large.add(group, piece, bytes_max)? {
            return Ok(Some(large));
        }
        tracing::debug!(group, changes = large.received_changes(), "took a group in pieces");
        self.busy_until = Instant::now() + busy_for(large.bytes());
        self.append(vec![large.into_group()], group).await?;
        Ok(None)
    }

    /// Makes groups durable; `last` is the number of the last of them.
    async fn append(&mut self, groups: Vec<CopiedGroup>, last: u64) -> Result<()> {
        let Self { follower, leader, session, heard, busy_until, .. } = self;
        // The log may write prepared changes again with any group.
        let again = busy_for(follower.bucket.prepared_bytes());
        let until = (*busy_until).max(Instant::now() + again);
        let busy = BusyFollower { follower, leader, session: *session, until };
        busy.run_reporting_busy(heard, follower.append(groups)).await?;
        self.durable = last;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_of_group_numbers_is_an_error() {
        assert_eq!(last_group_number(7, 3).unwrap(), 9);
        assert_eq!(last_group_number(u64::MAX, 1).unwrap(), u64::MAX);
        assert_eq!(last_group_number(u64::MAX, 2).unwrap_err().code, ErrorCode::OutOfOrder);
    }
}
