//! A follower and its calls to the leader.

use std::sync::Arc;
use std::time::Duration;

use proto::model::copies::Copies;
use proto::model::ids::BucketId;
use proto::rpc::api::{CopyAnswer, CopyQuestion, CopyRequest, ProjectorApi};
use proto::{Error, ErrorCode, Result};

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;

/// The time limit of an answer, which may be a message of several megabytes, or wait at the leader
/// for a group.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The reasons for which a session ends without a failure.
pub enum SessionEnd {
    /// The leader was restarted, and lacks mutations that it had before.
    LeaderLacks,
}

/// A follower of a bucket.
pub struct Follower {
    /// The projector that this follower belongs to.
    pub projector: Arc<Projector>,
    /// The bucket on this projector.
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
        let (node, question) = (projector.me(), CopyQuestion::Compare);
        Ok(Self { api, request: CopyRequest { bucket, term: copies.term, node, question } })
    }

    /// Sends a request to the leader and returns the answer.
    pub async fn ask(&self, question: CopyQuestion) -> Result<CopyAnswer> {
        let request = CopyRequest { question, ..self.request.clone() };
        let late = |_| Error::unavailable("the leading copy does not answer");
        tokio::time::timeout(ANSWER_WAIT, self.api.copy(request)).await.map_err(late)?
    }
}

/// Returns the error for an answer of the wrong kind.
pub fn unexpected() -> Error {
    Error::new(ErrorCode::InvalidParameter, "the leading copy answers another question")
}

impl Follower {
    /// Returns the client of the leader of a configuration.
    pub fn leader(&self, copies: &Copies) -> Result<LeaderCalls> {
        LeaderCalls::new(&self.projector, self.bucket.info.id, copies)
    }

    /// Runs `work` in the bucket's writer.
    pub async fn exclusively<T: Send + 'static>(
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
        self.projector.exclusively(Arc::clone(&self.bucket), noted).await
    }
}
