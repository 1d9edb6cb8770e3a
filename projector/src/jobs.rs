//! The queues of jobs for the writers of buckets, and the answers of the writers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use proto::{Error, ErrorCode, Result};
use tokio::sync::oneshot;

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::writer::{Job, Room, Work, Writer};

/// The time limit for which a call waits for the other copies of a bucket: longer than a take-over.
const COPIES_WAIT: Duration = Duration::from_secs(10);

impl Projector {
    /// Runs `work` in the bucket's writer, between two groups.
    pub(crate) async fn exclusively<T: Send + 'static>(
        &self,
        bucket: Arc<Bucket>,
        work: impl FnOnce(&Writer, &Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.queue_held(bucket, 0, |reply| {
            Work::Exclusive(Box::new(move |writer, bucket| {
                // The caller may have stopped waiting; the work is done anyway.
                let _gone = reply.send(work(writer, bucket));
            }))
        })
        .await
    }

    /// Waits for room for `bytes`, queues a job, and returns its answer.
    pub(crate) async fn queue<T>(
        &self,
        bucket: Arc<Bucket>,
        bytes: usize,
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        let (_, of_bucket) = self.queue_of(&bucket).ok_or_else(|| ending(&bucket))?;
        let room = async {
            let of_bucket = of_bucket.reserve(bytes).await;
            (of_bucket, self.write_budget.reserve(bytes).await)
        };
        let room = with_patience(&bucket, room).await.ok_or_else(|| bucket.crowded())?;
        self.send(bucket, (bytes, Some(room)), work).await
    }

    /// Queues a job without a wait for room: its bytes are reserved elsewhere, or it has none. A
    /// follower's job has its room at the leader: if it waited for room on this projector, two
    /// projectors could wait for each other.
    pub(crate) async fn queue_held<T>(
        &self,
        bucket: Arc<Bucket>,
        bytes: usize,
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        self.send(bucket, (bytes, None), work).await
    }

    async fn send<T>(
        &self,
        bucket: Arc<Bucket>,
        (bytes, room): (usize, Option<Room>),
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        let ending = || ending(&bucket);
        let (jobs, _) = self.queue_of(&bucket).ok_or_else(ending)?;
        let (reply, answer) = oneshot::channel();
        let sent = jobs.send(Job { bytes, work: work(reply), room });
        let sent = with_patience(&bucket, sent.map(|sent| sent.map_err(|_| ending()))).await;
        sent.ok_or_else(|| bucket.crowded())??;
        // A dropped job of a removed bucket was never begun, because begun jobs are answered. A job of a stopping projector may be in the
        // log.
        let dropped = || if bucket.is_removed() { bucket.removed_error() } else { stopped() };
        let answer = answer.map(|answer| answer.map_err(|_| dropped())?);
        let late = || Err(bucket.unconfirmed());
        with_patience(&bucket, answer).await.unwrap_or_else(late)
    }
}

/// Returns the error for a job that was never begun.
fn ending(bucket: &Bucket) -> Error {
    match bucket.is_removed() {
        true => bucket.removed_error(),
        false => Error::unavailable("the projector is stopping"),
    }
}

/// Waits for an event that the other copies of a bucket may delay; with a time limit if the bucket
/// has other copies. `None` after the time limit.
async fn with_patience<T>(bucket: &Bucket, wanted: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(wanted);
    loop {
        match tokio::time::timeout(COPIES_WAIT, &mut wanted).await {
            Ok(found) => return Some(found),
            Err(_) if bucket.links.is_alone() => {}
            Err(_) => return None,
        }
    }
}

/// The error for a job whose projector stops before it has answered.
fn stopped() -> Error {
    Error::new(ErrorCode::Interrupted, "the projector is stopping; the write may have been made")
        .with_hint("look whether the write is there before you repeat it")
}
