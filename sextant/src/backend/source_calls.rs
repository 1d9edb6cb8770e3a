//! Calls to the projectors of a bucket, with their retries.

use std::sync::Arc;
use std::time::Duration;

use proto::client::source::{documents_of_version, source_of};
use proto::model::bucket::BucketInfo;
use proto::model::ids::NodeId;
use proto::rpc::api::{Directory, Documents, DocumentsRequest, ProjectorApi, WriteReply};
use proto::{Error, ErrorCode, Result};
use router::Router;
use tokio::time::Instant;

use super::counters::Counters;

/// The time for which a call waits during the hand-over of a vbucket, or until another copy of a
/// bucket leads.
pub(super) const NOT_HOME_WAIT: Duration = Duration::from_secs(5);
/// The time for which a write waits for a projector that has not received a new bucket yet. A
/// projector creates some ten buckets per second.
const NEW_BUCKET_WAIT: Duration = Duration::from_secs(30);
/// The pause between two attempts of a call.
pub(super) const NOT_HOME_PAUSE: Duration = Duration::from_millis(20);

/// A caller of the projectors of buckets, with the retries of the calls. A clone is cheap.
#[derive(Clone)]
pub(super) struct SourceCalls {
    pub(super) router: Arc<Router>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) counters: Arc<Counters>,
}

impl SourceCalls {
    /// Returns a connection to the projectors of a bucket, according to the newest catalog.
    pub fn source(&self, bucket: &BucketInfo) -> Result<Arc<dyn ProjectorApi>> {
        let catalog = self.router.catalog();
        let bucket = catalog.buckets.get(&bucket.id).map_or(bucket, |now| &**now);
        source_of(&*self.directory, bucket, |node| catalog.nodes.get(&node).cloned())
    }

    /// Reads from the projector of a bucket. During a move of the bucket to another projector, the
    /// read is retried for at most [`NOT_HOME_WAIT`].
    pub(super) async fn read_from<T, F: Future<Output = Result<T>>>(
        &self,
        bucket: &BucketInfo,
        read: impl Fn(Arc<dyn ProjectorApi>) -> F,
    ) -> Result<T> {
        let began = Instant::now();
        loop {
            match read(self.source(bucket)?).await {
                Err(error)
                    if error.code == ErrorCode::NotOwner && began.elapsed() < NOT_HOME_WAIT => {}
                Err(error) if error.is_retry() && self.may_lead_soon(bucket, began) => {}
                found => return found.map_err(|error| self.with_bucket_name(bucket, error)),
            }
            tokio::time::sleep(NOT_HOME_PAUSE).await;
        }
    }

    /// Reads documents. Any holder serves the documents of a version of a data set; other
    /// documents are read from the owners of their vbuckets.
    pub(super) async fn read_documents(
        &self,
        bucket: &BucketInfo,
        request: DocumentsRequest,
    ) -> Result<Documents> {
        let began = Instant::now();
        loop {
            let catalog = self.router.catalog();
            let bucket = catalog.buckets.get(&bucket.id).map_or(bucket, |now| &**now);
            let Some((_, _, version)) = catalog.version(bucket.id) else { break };
            let find = |id: NodeId| {
                let node = catalog.nodes.get(&id);
                let unknown = || Error::unavailable(format!("projector {id} is not known"));
                node.map(|node| self.directory.projector(node)).ok_or_else(unknown)
            };
            match documents_of_version((bucket, version), request.clone(), find).await {
                Err(error)
                    if error.code == ErrorCode::NotOwner && began.elapsed() < NOT_HOME_WAIT => {}
                found => return found,
            }
            tokio::time::sleep(NOT_HOME_PAUSE).await;
        }
        let read = |source: Arc<dyn ProjectorApi>| {
            let request = request.clone();
            async move {
                match (request.snapshot, request.own) {
                    (None, None) => source.get(request.bucket, request.ids).await,
                    _ => source.get_for_transaction(request).await,
                }
            }
        };
        self.read_from(bucket, read).await
    }

    /// Returns an error if a bucket was dropped. Its projector may receive the drop later than this
    /// router, and would still accept writes until then.
    pub(super) fn check_present(&self, bucket: &BucketInfo) -> Result<()> {
        // The bucket is from a catalog of this router: if a newer catalog lacks it, it was dropped.
        let is_present = self.router.catalog().buckets.contains_key(&bucket.id);
        if is_present { Ok(()) } else { Err(dropped_error(bucket)) }
    }

    /// Adds the bucket's name to the error of a projector that does not have the bucket. The
    /// projector knows only the id of a dropped bucket.
    pub(super) fn with_bucket_name(&self, bucket: &BucketInfo, error: Error) -> Error {
        let name = &bucket.name;
        let was_dropped = self.check_present(bucket).is_err();
        match error.code {
            ErrorCode::Unknown | ErrorCode::NotOwner if was_dropped => dropped_error(bucket),
            ErrorCode::Unknown => {
                let what = format!("its projector does not have bucket \"{name}\"");
                Error { message: what, ..error }
            }
            _ => error,
        }
    }

    /// Returns true if another copy of the bucket may soon lead and answer. That requires that
    /// the bucket has other copies, and that the first attempt was less than [`NOT_HOME_WAIT`]
    /// ago.
    fn may_lead_soon(&self, bucket: &BucketInfo, began: Instant) -> bool {
        let catalog = self.router.catalog();
        let has_others = catalog.copies.get(&bucket.id).is_some_and(|copies| copies.wanted > 1);
        has_others && began.elapsed() < NOT_HOME_WAIT
    }

    /// Writes to the projector of a bucket. Retries if nothing was written and either the
    /// projector has not received the new bucket yet or another copy may take over.
    pub(super) async fn write_to<T, F: Future<Output = Result<T>>>(
        &self,
        bucket: &BucketInfo,
        write: impl Fn(Arc<dyn ProjectorApi>) -> F,
    ) -> Result<T> {
        let began = Instant::now();
        let deadline = began + NEW_BUCKET_WAIT;
        loop {
            self.check_present(bucket)?;
            match write(self.source(bucket)?).await {
                // The projector does not have the bucket yet, or is about to give it away: nothing was written.
                Err(error) if error.code == ErrorCode::NotOwner && Instant::now() < deadline => {
                    tokio::time::sleep(NOT_HOME_PAUSE).await;
                }
                // Nothing was written. The projector has waited for the outcome, or the outcome arrived just too late.
                Err(error) if error.code == ErrorCode::Held && began.elapsed() < NOT_HOME_WAIT => {
                    tokio::time::sleep(NOT_HOME_PAUSE).await;
                }
                // Nothing was written, and another copy may take over.
                Err(error)
                    if error.code == ErrorCode::Unavailable
                        && self.may_lead_soon(bucket, began) =>
                {
                    tokio::time::sleep(NOT_HOME_PAUSE).await;
                }
                done => {
                    return done.map_err(|error| in_doubt(self.with_bucket_name(bucket, error)));
                }
            }
        }
    }

    /// Awaits a write, and counts its documents and its duration.
    pub(super) async fn count_write(
        &self,
        write: impl Future<Output = Result<WriteReply>>,
    ) -> Result<WriteReply> {
        let began = Instant::now();
        let reply = write.await?;
        self.counters.documents.inc_by(reply.affected);
        self.counters.write.observe(began.elapsed().as_secs_f64());
        Ok(reply)
    }
}

/// Returns the error for a dropped bucket.
fn dropped_error(bucket: &BucketInfo) -> Error {
    Error::new(ErrorCode::Unknown, format!("bucket \"{}\" was dropped", bucket.name))
}

/// Changes the error of a write whose connection was lost so that it says: the outcome is
/// unknown.
pub(super) fn in_doubt(error: Error) -> Error {
    if error.code != ErrorCode::Interrupted {
        return error;
    }
    let message = format!("{}; the write may have been carried out", error.message);
    Error::new(error.code, message).with_hint("look at the data before you write again")
}
