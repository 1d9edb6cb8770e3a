//! A session of a follower: from what it has to what the leader has, and on with the leader.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;
use proto::model::copies::{Copies, CopyRole};
use proto::plant::{self, Plant};
use proto::rpc::api::{CopiedMutation, CopyAnswer, CopyQuestion, CopyRequest, ProjectorApi};
use proto::{Error, ErrorCode, Result};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::apply::{Appended, beyond};
use super::fill::fill;
use crate::projector::Projector;
use crate::source::bucket::Bucket;
use crate::source::writer::{Work, Writer};

/// How long an answer may take: a message of several megabytes, and the time that the leader waits for a group.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// A follower of a bucket.
pub struct Follower {
    /// The projector.
    pub projector: Arc<Projector>,
    /// The bucket here.
    pub bucket: Arc<Bucket>,
    /// The last moment at which an answer of a leader came.
    pub heard_at: Mutex<Instant>,
}

/// The end of a session without a failure.
pub enum SessionEnd {
    /// The leader has begun again, and lacks something that it had.
    LeaderLacks,
}

/// The leader of a bucket.
pub struct LeaderCalls {
    api: Arc<dyn ProjectorApi>,
    request: CopyRequest,
}

impl LeaderCalls {
    /// Asks the leader.
    pub async fn ask(&self, question: CopyQuestion) -> Result<CopyAnswer> {
        let request = CopyRequest { question, ..self.request.clone() };
        let late = |_| Error::unavailable("the leading copy does not answer");
        tokio::time::timeout(ANSWER_WAIT, self.api.copy(request)).await.map_err(late)?
    }
}

/// The error for an answer to another question.
pub fn unexpected() -> Error {
    Error::new(ErrorCode::InvalidParameter, "the leading copy answers another question")
}

impl Follower {
    /// The leader of a configuration.
    pub fn leader(&self, copies: &Copies) -> Result<LeaderCalls> {
        let catalog = self.projector.catalog.borrow().clone();
        let node = catalog.and_then(|catalog| catalog.nodes.get(&copies.leader).cloned());
        let unknown = || Error::unavailable(format!("projector {} is not known", copies.leader));
        let api = self.projector.directory.projector(&*node.ok_or_else(unknown)?);
        let (bucket, node) = (self.bucket.info.id, self.projector.me());
        let question = CopyQuestion::Begin;
        Ok(LeaderCalls { api, request: CopyRequest { bucket, term: copies.term, node, question } })
    }

    /// Follows the leader until something fails.
    pub async fn session(&self, copies: &Copies) -> Result<SessionEnd> {
        let (id, me) = (self.bucket.info.id, self.projector.me());
        let leader = self.leader(copies)?;
        let session = loop {
            let CopyAnswer::Begun { session, base, purged } =
                leader.ask(CopyQuestion::Begin).await?
            else {
                return Err(unexpected());
            };
            let role = self.projector.copies_of(id).map_or(CopyRole::None, |now| now.role(me));
            // The leader of this very term had all of it: it began again with less, so its disk has lost something.
            let had_more = role == CopyRole::InSync
                && self.projector.roles.compared_in(id) == Some(copies.term)
                && beyond(&self.bucket, &base).next().is_some();
            if had_more && !plant::is(Plant::CopyKeepsTail) {
                return Ok(SessionEnd::LeaderLacks);
            }
            if fill(self, &leader, (&base, &purged), role).await? {
                let base = base.clone();
                self.exclusively(move |writer, bucket| writer.take_branches(bucket, &base)).await?;
                break session;
            }
        };
        self.projector.roles.compared(id, copies.term);
        let (mut durable, mut heard) = (0, 0);
        loop {
            let question = CopyQuestion::Next { session, durable, heard };
            let CopyAnswer::Groups { answer, first, groups } = leader.ask(question).await? else {
                return Err(unexpected());
            };
            *lock(&self.heard_at) = Instant::now();
            heard = answer;
            if groups.is_empty() {
                continue;
            }
            let last = first + groups.len() as u64 - 1;
            // After the first answer the leader says where its groups begin.
            if durable > 0 && first != durable + 1 {
                let what = format!("group {first} does not follow group {durable}");
                return Err(Error::new(ErrorCode::OutOfOrder, what));
            }
            self.append(groups).await?;
            durable = last;
        }
    }

    /// Makes groups durable. The documents take them while the leader is told.
    async fn append(&self, groups: Vec<Vec<CopiedMutation>>) -> Result<()> {
        let append = |reply: oneshot::Sender<Result<()>>| {
            Work::Exclusive(Box::new(move |writer: &Writer, bucket: &Bucket| {
                let appended = writer.append_groups(bucket, groups);
                let (appended, outcome): (Option<Appended<'_>>, _) = match appended {
                    Ok(appended) => (Some(appended), Ok(())),
                    Err(error) => (None, Err(error)),
                };
                // The follower may have stopped waiting; the groups stand all the same.
                let _gone = reply.send(outcome);
                if let Some(appended) = appended {
                    writer.show_groups(bucket, appended);
                }
            }))
        };
        self.projector.queue(Arc::clone(&self.bucket), 0, append).await
    }

    /// Runs `work` in the bucket's writer.
    pub async fn exclusively<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Writer, &Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.projector.exclusively(Arc::clone(&self.bucket), work).await
    }
}
