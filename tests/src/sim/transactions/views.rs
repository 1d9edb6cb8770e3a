//! Scans that began in a transaction and run concurrently with its further steps.

use std::future::Future;
use std::pin::{Pin, pin};

use futures::StreamExt;
use futures::stream::FuturesUnordered;

/// A scan in progress, which judges its result.
pub(super) type View = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The scans in progress.
#[derive(Default)]
pub(super) struct Views(FuturesUnordered<View>);

impl Views {
    /// Adds a scan.
    pub fn extend(&mut self, view: Option<View>) {
        self.0.extend(view);
    }

    /// Runs a future, and the scans meanwhile.
    pub async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(()) = self.0.next(), if !self.0.is_empty() => {}
            }
        }
    }

    /// Reads the scans to their ends.
    pub async fn end(&mut self) {
        while self.0.next().await.is_some() {}
    }
}
