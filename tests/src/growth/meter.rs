//! The processor time of each coordinator, which all run in one thread.
//!
//! The time of a poll counts for the process of the polled future. Calls between processes are
//! function calls here; the time of a call counts only for the called process.
#![allow(clippy::disallowed_methods, reason = "it measures real time, which no figure depends on")]

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt};
use proto::env::{BoxFuture, Spawner, Task};

/// The processor time of one process.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicU64>);

thread_local! {
    /// The meters of the nested polls of this thread, and the time at which the innermost meter was
    /// last updated.
    static RUNNING: RefCell<(Vec<Meter>, Option<Instant>)> = const { RefCell::new((Vec::new(), None)) };
}

/// A guard that ends the innermost poll on drop.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|(meters, since)| {
            add(meters, since);
            meters.pop();
        });
    }
}

/// Adds the time since the last update to the innermost meter.
fn add(meters: &[Meter], since: &mut Option<Instant>) {
    let now = Instant::now();
    if let (Some(meter), Some(since)) = (meters.last(), *since) {
        meter.0.fetch_add((now - since).as_nanos() as u64, Ordering::Relaxed);
    }
    *since = Some(now);
}

impl Meter {
    /// Returns the accumulated time and resets it.
    pub fn take(&self) -> Duration {
        Duration::from_nanos(self.0.swap(0, Ordering::Relaxed))
    }

    fn begin(&self) -> Ends {
        RUNNING.with_borrow_mut(|(meters, since)| {
            add(meters, since);
            meters.push(self.clone());
        });
        Ends
    }

    /// Runs a future and adds the time of its polls to this meter.
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|context| {
            let _ends = self.begin();
            future.as_mut().poll(context)
        })
        .await
    }

    /// Returns a stream whose polls are added to this meter.
    pub fn stream<T>(
        self,
        mut stream: impl Stream<Item = T> + Send + Unpin + 'static,
    ) -> impl Stream<Item = T> + Send + 'static {
        futures::stream::poll_fn(move |context| -> Poll<Option<T>> {
            let _ends = self.begin();
            stream.poll_next_unpin(context)
        })
    }
}

/// A spawner whose tasks run on a meter.
pub struct MeteredSpawner(pub Meter, pub Arc<dyn Spawner>);

impl Spawner for MeteredSpawner {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        let meter = self.0.clone();
        self.1.spawn(name, Box::pin(async move { meter.run(future).await }))
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.1.spawn_blocking(work);
    }
}
