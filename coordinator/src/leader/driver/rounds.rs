//! The rounds that fix moments. A moment is an index of the log at which epochs cover all
//! acknowledged writes, so each round queries the projectors for their ends. Several callers
//! share the moment of one round. A caller that arrives during a round waits for the next round,
//! since the current round may have queried the projector before the caller's write.

use std::collections::BTreeSet;
use std::sync::Mutex;

use proto::lock::lock;
use proto::model::ids::BucketId;
use proto::{Error, Result};
use tokio::sync::{Notify, watch};

/// The result of a round that fixes a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MomentRoundResult {
    /// The fixed moment, as an index of the log.
    pub(crate) at: u64,
    /// The buckets that the round did not wait for any longer: their epoch at the moment may lack
    /// acknowledged writes.
    pub(crate) held: BTreeSet<BucketId>,
}

/// The numbers of the rounds that have begun, and of the newest round that a caller waits for.
#[derive(Default)]
struct Numbers {
    begun: u64,
    wanted: u64,
}

/// The number of the last ended round, and its result.
type RoundResult = (u64, Result<MomentRoundResult>);

/// The rounds of a member, and the callers that wait for one.
pub(crate) struct Rounds {
    numbers: Mutex<Numbers>,
    wake: Notify,
    ended: watch::Sender<RoundResult>,
}

impl Default for Rounds {
    fn default() -> Self {
        let ended = watch::Sender::new((0, Ok(MomentRoundResult::default())));
        Self { numbers: Mutex::default(), wake: Notify::new(), ended }
    }
}

impl Rounds {
    /// Waits for a round that begins after this call, and returns its result.
    pub(crate) async fn next(&self) -> Result<MomentRoundResult> {
        let mut ended = self.ended.subscribe();
        let number = {
            let mut numbers = lock(&self.numbers);
            numbers.wanted = numbers.begun + 1;
            numbers.wanted
        };
        self.wake.notify_one();
        let stopped = |_| Error::unavailable("this coordinator member has stopped");
        let end = ended.wait_for(|(last, _)| *last >= number).await.map_err(stopped)?;
        end.1.clone()
    }

    /// Waits until a caller needs a round, and begins it. Returns the number of the round, for
    /// [`Rounds::end`].
    pub(crate) async fn begin(&self) -> u64 {
        loop {
            {
                let mut numbers = lock(&self.numbers);
                if numbers.wanted > numbers.begun {
                    numbers.begun += 1;
                    return numbers.begun;
                }
            }
            self.wake.notified().await;
        }
    }

    /// Ends a round and gives its result to the waiting callers.
    pub(crate) fn end(&self, number: u64, result: Result<MomentRoundResult>) {
        drop(self.ended.send_replace((number, result)));
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn callers_share_a_round_and_those_that_come_during_it_join_the_next() {
        let rounds = Rounds::default();
        let end = |number| {
            rounds.end(number, Ok(MomentRoundResult { at: number, held: BTreeSet::new() }))
        };
        let answered = |found: Result<MomentRoundResult>| found.expect("a round").at;
        let (mut first, mut second) = (pin!(rounds.next()), pin!(rounds.next()));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        assert_eq!(rounds.begin().await, 1);
        let mut late = pin!(rounds.next());
        assert!(poll!(&mut late).is_pending());
        end(1);
        assert_eq!((answered(first.await), answered(second.await)), (1, 1));
        assert!(poll!(&mut late).is_pending(), "its projector may have been asked before it came");
        assert_eq!(rounds.begin().await, 2);
        end(2);
        assert_eq!(answered(late.await), 2);
        assert!(poll!(pin!(rounds.begin())).is_pending(), "nobody wants a third round");
    }
}
