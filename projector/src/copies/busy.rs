//! Reports of a follower that it is *busy* with a large durable write.
//!
//! A leader gives up a follower that is silent for a second. A large write may take longer, so
//! the follower reports during the write that it is busy. The reports end after the longest time
//! that such a write may take, so that a hanging disk is detected. Such writes are large groups,
//! the data that a copy stores at the beginning of a session, and prepared changes that the log
//! writes again together with a small group (see `documents::change_log::PreparedPlace`).

use std::time::Duration;

use proto::Result;
use proto::rpc::api::{CopyAnswer, CopyRequestKind};
use tokio::time::Instant;

use super::follower::{Follower, LeaderCalls, unexpected_answer_error};

/// The time within which most writes end. Reports begin only when a write takes longer.
const QUICK: Duration = Duration::from_millis(100);

/// A follower that reports to its leader, up to a point in time, that it is busy.
pub struct BusyFollower<'f> {
    /// The follower that is busy.
    pub follower: &'f Follower,
    /// The client of the follower's leader.
    pub leader: &'f LeaderCalls,
    /// The number of the follower's session at the leader.
    pub session: u64,
    /// The time at which the reports must end.
    pub until: Instant,
}

impl BusyFollower<'_> {
    /// Runs `work` to its end, and reports to the leader during that time that the follower is
    /// busy. `heard` is the number of the leader's last answer. If the leader does not answer a
    /// report, the error is returned after the end of the work.
    pub async fn run_reporting_busy<T>(
        &self,
        heard: &mut u64,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Self { session, until, .. } = *self;
        tokio::pin!(work);
        if Instant::now() < until
            && let Ok(done) = tokio::time::timeout(QUICK, &mut work).await
        {
            return done;
        }
        let mut failed = None;
        while failed.is_none() && Instant::now() < until {
            let question = CopyRequestKind::Busy { session, heard: *heard };
            let answer = tokio::select! {
                biased;
                done = &mut work => return done,
                answer = self.leader.send_request(question) => answer,
            };
            match answer {
                Ok(CopyAnswer::Groups { answer, .. }) => {
                    self.follower.projector.roles.record_answer(self.follower.bucket.info.id);
                    *heard = answer;
                }
                Ok(_) => failed = Some(unexpected_answer_error()),
                Err(error) => failed = Some(error),
            }
        }
        let done = work.await?;
        failed.map_or(Ok(done), Err)
    }
}
