//! A session of a follower: from its own position to the leader's, and then group after group.

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::commits::{NewestCommits, TransactionEvent};
use proto::model::copies::{Copies, CopyRole};
use proto::model::history::SourceHistory;
use proto::model::ids::{Seqno, TransactionId};
use proto::model::joint::Prepared;
use proto::plant::{self, Plant};
use proto::rpc::api::{CopiedGroup, CopyAnswer, CopyQuestion};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::apply::{LoggedMutations, beyond};
use super::busy::Busy;
use super::fill::fill;
use super::follower::{Follower, LeaderCalls, SessionEnd, unexpected};
use super::groups::FollowerSession;
use super::pieces::Assembly;
use crate::source::groups::gate::SMALL_BYTES_MAX;
use crate::source::groups::link::busy_for;
use crate::source::view::bucket::Bucket;
use crate::source::writer::{Work, Writer};

/// The pause between two comparisons of a projector without a role.
const COMPARE_AGAIN: Duration = Duration::from_secs(2);

impl Follower {
    /// Follows the leader until an error or the end of the session.
    pub async fn session(&self, copies: &Copies) -> Result<SessionEnd> {
        let (id, me) = (self.bucket.info.id, self.projector.me());
        let leader = self.leader(copies)?;
        let session = loop {
            let own = self.bucket.commits();
            let prepared = self.digests(&own).await;
            let begun = leader.ask(CopyQuestion::Begin { prepared }).await?;
            let CopyAnswer::Begun { session, base, purged, mut commits, is_awaited } = begun else {
                return Err(unexpected());
            };
            let bytes = self.take_prepared((&leader, session), &own, &mut commits).await?;
            let role = self.projector.copies_of(id).map_or(CopyRole::None, |now| now.role(me));
            // The leader of this very term had all of it: it began again with less, so its disk has lost something.
            let had_more = role == CopyRole::InSync
                && self.projector.roles.compared_in(id) == Some(copies.term)
                && beyond(&self.bucket, &base).next().is_some();
            if had_more && !plant::is(Plant::CopyKeepsTail) {
                return Ok(SessionEnd::LeaderLacks);
            }
            let is_free = role == CopyRole::Joining && !is_awaited;
            let until = Instant::now() + busy_for(bytes);
            let busy = Busy { follower: self, leader: &leader, session, until };
            let begins = self.begins_at(&leader, (base, &purged), commits, is_free);
            if busy.during(&mut 0, begins).await? {
                break session;
            }
        };
        self.projector.roles.compared(id, copies.term);
        let (durable, heard, busy_until) = (0, 0, Instant::now());
        FollowerSession { follower: self, leader, session, durable, heard, busy_until }
            .follow()
            .await
    }

    /// Checks whether the leader has all mutations of this copy. This projector has no role in the bucket, so its copy may then be removed.
    pub async fn compare(&self, copies: &Copies) -> Result<SessionEnd> {
        let id = self.bucket.info.id;
        while self.projector.roles.compared_in(id) != Some(copies.term) {
            let asked = self.leader(copies)?.ask(CopyQuestion::Compare).await;
            if let Ok(CopyAnswer::Compared(history)) = asked
                && beyond(&self.bucket, &history).next().is_none()
            {
                self.projector.roles.compared(id, copies.term);
                self.projector.roles.look_again();
                break;
            }
            tokio::time::sleep(COMPARE_AGAIN).await;
        }
        std::future::pending().await
    }

    /// Brings the copy to the beginning of a session. Returns false if another session must follow
    /// first.
    async fn begins_at(
        &self,
        leader: &LeaderCalls,
        (base, purged): (SourceHistory, &[Seqno]),
        commits: NewestCommits,
        is_free: bool,
    ) -> Result<bool> {
        if !fill(self, leader, (&base, purged), &commits, is_free).await? {
            return Ok(false);
        }
        let take =
            move |writer: &Writer, bucket: &Bucket| writer.take_branches(bucket, &base, &commits);
        self.exclusively(take).await.map(|()| true)
    }

    /// Returns the digests of the transactions that are prepared in this copy.
    async fn digests(&self, own: &NewestCommits) -> Vec<(TransactionId, u64)> {
        let prepared: Vec<_> = own.prepared().cloned().collect();
        if prepared.is_empty() {
            return Vec::new();
        }
        let digest = |one: &Arc<Prepared>| (one.transaction, one.digest());
        self.projector.env.blocking(move || prepared.iter().map(digest).collect()).await
    }

    /// Fetches the changes of the transactions that were prepared at the beginning of a session,
    /// except those that the copy has. Returns the bytes of the fetched changes.
    async fn take_prepared(
        &self,
        (leader, session): (&LeaderCalls, u64),
        own: &NewestCommits,
        commits: &mut NewestCommits,
    ) -> Result<usize> {
        if !commits.has_prepared() {
            return Ok(0);
        }
        let (mut prepared, bytes_max) =
            (Assembly::new(0), self.projector.config.copy_step_bytes_max);
        loop {
            let question = CopyQuestion::Prepared { session, held: prepared.held() };
            let CopyAnswer::Prepared(piece) = leader.ask(question).await? else {
                return Err(unexpected());
            };
            self.projector.roles.heard(self.bucket.info.id);
            if prepared.add(0, piece, bytes_max)? {
                break;
            }
        }
        let count = commits.prepared().len();
        let (bytes, taken) = (prepared.bytes(), prepared.into_group().commits);
        *commits = commits.with_prepared(|hollow| own.find_prepared(hollow.transaction).cloned());
        taken.iter().for_each(|event| commits.add(event));
        match commits.prepared().len() == count {
            true => Ok(bytes),
            false => Err(unexpected()),
        }
    }

    /// Makes groups durable. They are added to the document table while the leader receives the
    /// answer.
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
                    writer.show_groups(bucket, appended);
                }
            }))
        };
        self.projector.queue_held(Arc::clone(&self.bucket), 0, append).await
    }
}
