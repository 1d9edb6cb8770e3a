//! A follower of a bucket, and the calls that it makes to the bucket's leader.

use std::sync::Arc;
use std::time::Duration;

use proto::model::copies::Copies;
use proto::model::ids::BucketId;
use proto::rpc::api::{CopyAnswer, CopyRequest, CopyRequestKind, ProjectorApi};
use proto::{Error, ErrorCode, Result};

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;

/// The time limit for the leader's answer. The answer may have several megabytes, and the leader
/// may delay it until a group arrives.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The reasons for which a follower's session ends without a failure.
pub enum SessionEnd {
    /// The leader was restarted, and lacks mutations that it had before. The follower then
    /// requests leadership.
    LeaderLacks,
}

/// A follower: the bucket whose leader it follows, and the projector that it runs on.
pub struct Follower {
    /// The projector that this follower belongs to.
    pub projector: Arc<Projector>,
    /// The bucket object on this projector.
    pub bucket: Arc<Bucket>,
}

/// The client of the leader of a bucket.
pub struct LeaderCalls {
    api: Arc<dyn ProjectorApi>,
    request: CopyRequest,
}

impl LeaderCalls {
    /// Returns the client of the leader in a bucket's configuration.
    pub fn new(projector: &Projector, bucket: BucketId, copies: &Copies) -> Result<Self> {
        let catalog = projector.catalog.borrow().clone();
        let node = catalog.and_then(|catalog| catalog.nodes.get(&copies.leader).cloned());
        let unknown = || Error::unavailable(format!("projector {} is not known", copies.leader));
        let api = projector.directory.projector(&*node.ok_or_else(unknown)?);
        let (node, question) = (projector.node_id(), CopyRequestKind::Compare);
        Ok(Self { api, request: CopyRequest { bucket, term: copies.term, node, question } })
    }

    /// Sends a request to the leader and returns the answer.
    pub async fn send_request(&self, question: CopyRequestKind) -> Result<CopyAnswer> {
        let request = CopyRequest { question, ..self.request.clone() };
        let late = |_| Error::unavailable("the leading copy does not answer");
        tokio::time::timeout(ANSWER_WAIT, self.api.copy(request)).await.map_err(late)?
    }
}

/// Returns the error for an answer of the leader whose kind does not match the request.
pub fn unexpected_answer_error() -> Error {
    Error::new(ErrorCode::InvalidParameter, "the leading copy answers another question")
}

impl Follower {
    /// Returns the client of the leader of a configuration.
    pub fn leader_calls(&self, copies: &Copies) -> Result<LeaderCalls> {
        LeaderCalls::new(&self.projector, self.bucket.info.id, copies)
    }

    /// Runs `work` in the bucket's writer, while the writer does nothing else.
    pub async fn run_exclusively<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Writer, &Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let noted = |writer: &Writer, bucket: &Bucket| {
            work(writer, bucket).inspect_err(|error| {
                // A store that could not write a change accepts no more until it is opened again.
                if error.code == ErrorCode::Io {
                    writer.failed.notify_one();
                }
            })
        };
        self.projector.run_exclusively(Arc::clone(&self.bucket), noted).await
    }
}
