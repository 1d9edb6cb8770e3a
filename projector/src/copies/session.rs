//! A session of a follower with its leader: first the follower's copy gets the mutations that it
//! lacks, then each new group.

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::commits::{NewestCommits, TransactionEvent};
use proto::model::copies::{Copies, CopyRole};
use proto::model::history::SourceHistory;
use proto::model::ids::{Seqno, TransactionId};
use proto::model::joint::PreparedTransaction;
use proto::plant::{self, Plant};
use proto::rpc::api::{CopiedGroup, CopyAnswer, CopyRequestKind};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::apply::{LoggedMutations, ends_beyond_leader};
use super::busy::BusyFollower;
use super::fill::fill;
use super::follower::{Follower, LeaderCalls, SessionEnd, unexpected_answer_error};
use super::groups::FollowerSession;
use super::pieces::GroupAssembly;
use crate::source::groups::gate::SMALL_BYTES_MAX;
use crate::source::groups::link::busy_for;
use crate::source::view::bucket::Bucket;
use crate::source::writer::{Work, Writer};

/// The pause between two comparisons with the leader, for a projector without a role in the
/// bucket.
const COMPARE_AGAIN: Duration = Duration::from_secs(2);

impl Follower {
    /// Follows the leader in one session, until the session ends or fails.
    pub async fn run_session(&self, copies: &Copies) -> Result<SessionEnd> {
        let (id, me) = (self.bucket.info.id, self.projector.node_id());
        let leader = self.leader_calls(copies)?;
        let session = loop {
            let own = self.bucket.commits();
            let prepared = self.prepared_digests(&own).await;
            let begun = leader.send_request(CopyRequestKind::Begin { prepared }).await?;
            let CopyAnswer::Begun { session, base, purged, mut commits, is_awaited } = begun else {
                return Err(unexpected_answer_error());
            };
            let bytes = self.fetch_prepared((&leader, session), &own, &mut commits).await?;
            let role = self.projector.copies_of(id).map_or(CopyRole::None, |now| now.role(me));
            // The leader of this very term had all of it: it began again with less, so its disk has lost something.
            let had_more = role == CopyRole::InSync
                && self.projector.roles.compared_in(id) == Some(copies.term)
                && ends_beyond_leader(&self.bucket, &base).next().is_some();
            if had_more && !plant::is(Plant::CopyKeepsTail) {
                return Ok(SessionEnd::LeaderLacks);
            }
            let is_free = role == CopyRole::Joining && !is_awaited;
            let until = Instant::now() + busy_for(bytes);
            let busy = BusyFollower { follower: self, leader: &leader, session, until };
            let begins = self.fill_to_session_begin(&leader, (base, &purged), commits, is_free);
            if busy.run_reporting_busy(&mut 0, begins).await? {
                break session;
            }
        };
        self.projector.roles.record_compared(id, copies.term);
        let (durable, heard, busy_until) = (0, 0, Instant::now());
        FollowerSession { follower: self, leader, session, durable, heard, busy_until }
            .follow()
            .await
    }

    /// Compares this copy with the leader's until the leader has all mutations of the copy, and
    /// records that. Called on a projector without a role in the bucket, whose copy may then be
    /// removed. Returns only with an error.
    pub async fn compare_with_leader(&self, copies: &Copies) -> Result<SessionEnd> {
        let id = self.bucket.info.id;
        while self.projector.roles.compared_in(id) != Some(copies.term) {
            let asked = self.leader_calls(copies)?.send_request(CopyRequestKind::Compare).await;
            if let Ok(CopyAnswer::Compared(history)) = asked
                && ends_beyond_leader(&self.bucket, &history).next().is_none()
            {
                self.projector.roles.record_compared(id, copies.term);
                self.projector.roles.wake_watchers();
                break;
            }
            tokio::time::sleep(COMPARE_AGAIN).await;
        }
        std::future::pending().await
    }

    /// Fills the copy up to the place at which a session begins. Returns false if mutations are
    /// still missing, so that another session must follow.
    async fn fill_to_session_begin(
        &self,
        leader: &LeaderCalls,
        (base, purged): (SourceHistory, &[Seqno]),
        commits: NewestCommits,
        is_free: bool,
    ) -> Result<bool> {
        if !fill(self, leader, (&base, purged), &commits, is_free).await? {
            return Ok(false);
        }
        let take = move |writer: &Writer, bucket: &Bucket| {
            writer.adopt_leader_branches(bucket, &base, &commits)
        };
        self.run_exclusively(take).await.map(|()| true)
    }

    /// Returns the transactions that are prepared in this copy, each with a digest of its
    /// changes.
    async fn prepared_digests(&self, own: &NewestCommits) -> Vec<(TransactionId, u64)> {
        let prepared: Vec<_> = own.prepared().cloned().collect();
        if prepared.is_empty() {
            return Vec::new();
        }
        let digest = |one: &Arc<PreparedTransaction>| (one.transaction, one.digest());
        self.projector.env.blocking(move || prepared.iter().map(digest).collect()).await
    }

    /// Fetches the changes of the transactions that were prepared at the beginning of a session,
    /// except those that the copy has. Returns the size of the fetched changes in bytes.
    async fn fetch_prepared(
        &self,
        (leader, session): (&LeaderCalls, u64),
        own: &NewestCommits,
        commits: &mut NewestCommits,
    ) -> Result<usize> {
        if !commits.has_prepared() {
            return Ok(0);
        }
        let (mut prepared, bytes_max) =
            (GroupAssembly::new(0), self.projector.config.copy_step_bytes_max);
        loop {
            let question = CopyRequestKind::Prepared { session, held: prepared.received_changes() };
            let CopyAnswer::Prepared(piece) = leader.send_request(question).await? else {
                return Err(unexpected_answer_error());
            };
            self.projector.roles.record_answer(self.bucket.info.id);
            if prepared.add(0, piece, bytes_max)? {
                break;
            }
        }
        let count = commits.prepared().len();
        let (bytes, taken) = (prepared.bytes(), prepared.into_group().commits);
        *commits = commits.with_prepared(|hollow| own.find_prepared(hollow.transaction).cloned());
        taken.iter().for_each(|event| commits.apply_event(event));
        match commits.prepared().len() == count {
            true => Ok(bytes),
            false => Err(unexpected_answer_error()),
        }
    }

    /// Makes groups durable, and begins to add them to the document table. The answer to the
    /// leader does not wait until the table has them.
    pub(super) async fn append(&self, groups: Vec<CopiedGroup>) -> Result<()> {
        let mutations = groups.iter().flat_map(|group| &group.mutations);
        let sizes = mutations.map(|copied| copied.id.len() + copied.document.len());
        let prepared = groups.iter().flat_map(|group| &group.commits).map(|event| match event {
            TransactionEvent::Prepared(prepared) => prepared.bytes(),
            _ => 0,
        });
        // The log may write what is prepared again.
        let bytes = sizes.chain(prepared).sum::<usize>() + self.bucket.prepared_bytes();
        let kind = match bytes <= SMALL_BYTES_MAX {
            true => Work::Brief,
            false => Work::Exclusive,
        };
        let append = |reply: oneshot::Sender<Result<()>>| {
            kind(Box::new(move |writer: &Writer, bucket: &Bucket| {
                let appended = writer.append_groups(bucket, groups);
                let (appended, outcome): (Option<LoggedMutations<'_>>, _) = match appended {
                    Ok(appended) => (Some(appended), Ok(())),
                    Err(error) => (None, Err(error)),
                };
                // The follower may have stopped waiting; the groups are valid anyway.
                let _gone = reply.send(outcome);
                if let Some(appended) = appended {
                    writer.make_groups_visible(bucket, appended);
                }
            }))
        };
        self.projector.queue_unreserved(Arc::clone(&self.bucket), 0, append).await
    }
}
