//! Futures that run concurrently with the steps of the sessions: commits, and scans that may
//! outlive their transactions.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use proto::Result;
use proto::rpc::api::WriteReply;

use super::View;
use crate::sim::transactions::running::Running;

/// A commit in progress.
pub(super) type Commit = LocalBoxFuture<'static, Ended>;

/// The result of a commit.
pub(super) struct Ended {
    /// The number of the commit in [`super::attempts::Attempts`].
    pub attempt: usize,
    /// The transaction in both buckets.
    pub parts: [Running; 2],
    /// The answer; `None` if the session was lost or the answer did not arrive in time.
    pub answer: Option<Result<Vec<WriteReply>>>,
    /// The simulated time of the call.
    pub began: Duration,
}

/// The commits and scans in progress.
#[derive(Default)]
pub(super) struct Background {
    commits: FuturesUnordered<Commit>,
    views: FuturesUnordered<View>,
    ended: Vec<Ended>,
}

impl Background {
    /// Adds a commit.
    pub fn commit(&mut self, commit: Commit) {
        self.commits.push(commit);
    }

    /// Adds a scan.
    pub fn view(&mut self, view: Option<View>) {
        self.views.extend(view);
    }

    /// Runs a future, and the commits and scans meanwhile.
    pub async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(ended) = self.commits.next(), if !self.commits.is_empty() => {
                    self.ended.push(ended);
                }
                Some(()) = self.views.next(), if !self.views.is_empty() => {}
            }
        }
    }

    /// Returns the commits that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// Waits until all commits and scans have ended.
    pub async fn end(&mut self) {
        while let Some(ended) = self.commits.next().await {
            self.ended.push(ended);
        }
        while self.views.next().await.is_some() {}
    }
}
