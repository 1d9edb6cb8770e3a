//! Queues the jobs for the writers of buckets, and returns the writers' answers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use proto::{Error, ErrorCode, Result};
use tokio::sync::oneshot;

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::writer::{Job, JobReservations, Work, Writer};

/// The time limit for which a call waits for the other copies of a bucket: longer than another
/// copy needs to take over leadership.
const COPIES_WAIT: Duration = Duration::from_secs(10);

impl Projector {
    /// Runs `work` in the bucket's writer, between two groups of writes.
    pub(crate) async fn run_exclusively<T: Send + 'static>(
        &self,
        bucket: Arc<Bucket>,
        work: impl FnOnce(&Writer, &Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.queue_unreserved(bucket, 0, |reply| {
            Work::Exclusive(Box::new(move |writer, bucket| {
                // The caller may have stopped waiting; the work is done anyway.
                let _gone = reply.send(work(writer, bucket));
            }))
        })
        .await
    }

    /// Waits until memory for `bytes` is reserved, queues a job for the bucket's writer, and
    /// returns the writer's answer.
    pub(crate) async fn queue<T>(
        &self,
        bucket: Arc<Bucket>,
        bytes: usize,
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        let (_, of_bucket) = self.queue_of(&bucket).ok_or_else(|| not_begun_error(&bucket))?;
        let room = async {
            let of_bucket = of_bucket.reserve(bytes).await;
            (of_bucket, self.write_budget.reserve(bytes).await)
        };
        let room =
            with_copies_timeout(&bucket, room).await.ok_or_else(|| bucket.no_memory_error())?;
        self.send(bucket, (bytes, Some(room)), work).await
    }

    /// Queues a job for which no memory must be reserved, and returns the writer's answer. The
    /// memory is reserved elsewhere: a follower's job counts at the leader. If a follower waited
    /// for memory too, two projectors could wait for each other.
    pub(crate) async fn queue_unreserved<T>(
        &self,
        bucket: Arc<Bucket>,
        bytes: usize,
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        self.send(bucket, (bytes, None), work).await
    }

    /// Queues a job with the memory that is reserved for it, and waits for the answer.
    async fn send<T>(
        &self,
        bucket: Arc<Bucket>,
        (bytes, room): (usize, Option<JobReservations>),
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        let ending = || not_begun_error(&bucket);
        let (jobs, _) = self.queue_of(&bucket).ok_or_else(ending)?;
        let (reply, answer) = oneshot::channel();
        let sent = jobs.send(Job { bytes, work: work(reply), room });
        let sent = with_copies_timeout(&bucket, sent.map(|sent| sent.map_err(|_| ending()))).await;
        sent.ok_or_else(|| bucket.no_memory_error())??;
        // A dropped job of a removed bucket was never begun, because begun jobs are answered. A job of a stopping projector may be in the
        // log.
        let dropped =
            || if bucket.is_removed() { bucket.removed_error() } else { stopping_error() };
        let answer = answer.map(|answer| answer.map_err(|_| dropped())?);
        let late = || Err(bucket.unconfirmed_error());
        with_copies_timeout(&bucket, answer).await.unwrap_or_else(late)
    }
}

/// Returns the error for a job that was never begun, because the bucket was removed or the
/// projector is stopping.
fn not_begun_error(bucket: &Bucket) -> Error {
    match bucket.is_removed() {
        true => bucket.removed_error(),
        false => Error::unavailable("the projector is stopping"),
    }
}

/// Waits for an event that the other copies of a bucket may delay. If the bucket has other
/// copies, the wait has a time limit, after which `None` is returned.
async fn with_copies_timeout<T>(bucket: &Bucket, wanted: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(wanted);
    loop {
        match tokio::time::timeout(COPIES_WAIT, &mut wanted).await {
            Ok(found) => return Some(found),
            Err(_) if bucket.links.is_alone() => {}
            Err(_) => return None,
        }
    }
}

/// Returns the error for a job whose answer is missing because the projector stops.
fn stopping_error() -> Error {
    Error::new(ErrorCode::Interrupted, "the projector is stopping; the write may have been made")
        .with_hint("look whether the write is there before you repeat it")
}
