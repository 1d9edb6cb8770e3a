//! Reports of a follower that it is *busy* with a large durable write.
//!
//! A follower that is silent for a second is given up. A large write takes longer, so the follower
//! reports meanwhile that it is busy. It does so for as long as such a write may take, and no
//! longer, so that a hanging disk is detected. Such writes are large groups, the data that a copy
//! stores at the beginning of a session, and prepared changes that the log writes again together
//! with a small group (see `documents::change_log::PreparedPlace`).

use std::time::Duration;

use proto::Result;
use proto::rpc::api::{CopyAnswer, CopyQuestion};
use tokio::time::Instant;

use super::follower::{Follower, LeaderCalls, unexpected};

/// The time within which most writes end; then no report is sent.
const QUICK: Duration = Duration::from_millis(100);

/// A follower that may be busy until a point in time.
pub struct Busy<'f> {
    /// The follower that is busy.
    pub follower: &'f Follower,
    /// The client of the follower's leader.
    pub leader: &'f LeaderCalls,
    /// The number of the session.
    pub session: u64,
    /// The time until which the follower may be busy.
    pub until: Instant,
}

impl Busy<'_> {
    /// Runs `work` to its end, and reports meanwhile to the leader that the follower is busy.
    /// `heard` is the number of the last answer received. If the leader does not answer, the error
    /// is returned after the end of the work.
    pub async fn during<T>(
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
            let question = CopyQuestion::Busy { session, heard: *heard };
            let answer = tokio::select! {
                biased;
                done = &mut work => return done,
                answer = self.leader.ask(question) => answer,
            };
            match answer {
                Ok(CopyAnswer::Groups { answer, .. }) => {
                    self.follower.projector.roles.heard(self.follower.bucket.info.id);
                    *heard = answer;
                }
                Ok(_) => failed = Some(unexpected()),
                Err(error) => failed = Some(error),
            }
        }
        let done = work.await?;
        failed.map_or(Ok(done), Err)
    }
}
