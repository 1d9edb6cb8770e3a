//! The limits of definitions that a process sends to the coordinators at once, for all users and
//! for each user.
//!
//! All definitions go through one log of the coordinators, so a user that sends many of them
//! would delay all other users. Above the limit, a user's definition therefore waits, first for
//! the user's earlier definitions and then for those of other users, in order of arrival.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;
use proto::model::ids::UserId;
use proto::{ErrorCode, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::limits::ClientLimits;
use super::refusals::{Limit, Refusals};

/// The maximum time that a definition waits until it may be sent.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The limits of the definitions in flight. Clones share the counts.
#[derive(Clone)]
pub struct Definitions(Arc<Shared>);

/// The counts of definitions in flight, shared by all clones.
struct Shared {
    each_max: usize,
    all: Arc<Semaphore>,
    refusals: Refusals,
    /// The limit of each user that sends a definition or waits to send one.
    by_user: Mutex<BTreeMap<UserId, Arc<Semaphore>>>,
}

/// The permission to send one definition. It is given back when this value is dropped.
pub struct DefinitionPlace {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Definitions {
    /// Returns the counter of definitions with these limits.
    pub fn new(limits: &ClientLimits, refusals: Refusals) -> Self {
        let count = |limit: u32| (limit as usize).clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Shared {
            each_max: count(limits.user_definitions_max),
            all: Arc::new(Semaphore::new(count(limits.definitions_max))),
            refusals,
            by_user: Mutex::default(),
        }))
    }

    /// Waits until a user may send a definition. Returns an error after the time limit.
    pub async fn take(&self, user: UserId) -> Result<DefinitionPlace> {
        let own = timeout(WAIT_MAX, self.of_user(user).acquire_owned()).await;
        let Ok(Ok(own)) = own else { return Err(self.refusal(Limit::UserDefinitions)) };
        let of_all = timeout(WAIT_MAX, Arc::clone(&self.0.all).acquire_owned()).await;
        let Ok(Ok(of_all)) = of_all else { return Err(self.refusal(Limit::Definitions)) };
        Ok(DefinitionPlace { _own: own, _of_all: of_all })
    }

    /// Returns the semaphore of a user.
    fn of_user(&self, user: UserId) -> Arc<Semaphore> {
        let mut by_user = lock(&self.0.by_user);
        // Each holder of a place, and each waiting caller, has a reference.
        by_user.retain(|_, places| Arc::strong_count(places) > 1);
        let places =
            by_user.entry(user).or_insert_with(|| Arc::new(Semaphore::new(self.0.each_max)));
        Arc::clone(places)
    }

    /// Counts a refusal and returns its error.
    fn refusal(&self, limit: Limit) -> proto::Error {
        let what = "other definitions are under way, and there was no place in time".to_owned();
        self.0.refusals.refuse(limit, ErrorCode::TooBusy, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_user_waits_for_its_own_definitions_and_then_for_those_of_others() {
        let limits =
            ClientLimits { user_definitions_max: 2, definitions_max: 3, ..ClientLimits::default() };
        let definitions = Definitions::new(&limits, Refusals::default());
        let refused = async |user| {
            let error = definitions.take(UserId(user)).await.err().expect("no place");
            assert_eq!(error.code.sqlstate(), "53300");
            error.hint.unwrap_or_default()
        };
        let first = definitions.take(UserId(1)).await.expect("a place");
        let _second = definitions.take(UserId(1)).await.expect("a place");
        assert!(refused(1).await.contains("user_definitions_max"));
        let other = definitions.take(UserId(2)).await.expect("a place of another user");
        assert!(refused(2).await.contains("setting definitions_max"));
        let waits = async { definitions.take(UserId(2)).await.expect("a place") };
        let ends = async {
            tokio::time::sleep(WAIT_MAX / 2).await;
            drop(first);
        };
        let (third, ()) = tokio::join!(waits, ends);
        drop((other, third));
        definitions.take(UserId(3)).await.expect("a place");
        let known: Vec<_> = lock(&definitions.0.by_user).keys().copied().collect();
        assert_eq!(known, [UserId(1), UserId(3)], "users without definitions are forgotten");
    }
}
