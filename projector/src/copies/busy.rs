//! A follower that is *busy*: it makes something large durable.
//!
//! A follower that is silent for a second is given up. A large write takes longer than that, so meanwhile the follower reports that it is
//! busy: for as long as such a write may take, and no longer, so that a disk that hangs is still noticed. The writes are large groups, the
//! data that a copy stores at the beginning of a session, and prepared changes that the log writes again with some small group
//! (`documents::change_log::PreparedPlace` has the reason).

use std::time::Duration;

use proto::Result;
use proto::rpc::api::{CopyAnswer, CopyQuestion};
use tokio::time::Instant;

use super::follower::{Follower, LeaderCalls, unexpected};

/// Most writes end within this time, and then no call is made.
const QUICK: Duration = Duration::from_millis(100);

/// A follower that may be busy until a time.
pub struct Busy<'f> {
    /// The follower that is busy.
    pub follower: &'f Follower,
    /// The calls to its leader.
    pub leader: &'f LeaderCalls,
    /// The number of the session.
    pub session: u64,
    /// The end of the time.
    pub until: Instant,
}

impl Busy<'_> {
    /// Runs a work to its end, and reports meanwhile to the leader that the follower is busy. `heard` is the time of the leader's last
    /// answer. If the leader does not answer, the error is returned when the work has ended.
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
