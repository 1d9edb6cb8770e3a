//! The limit of memory that the requests of all clients take.
//!
//! Requests wait in order of arrival until enough memory is free. After a time limit they are
//! refused. A user has at most half of the memory, so that one user with many prepared statements
//! or open calls does not stop the others. A request larger than the whole budget is admitted
//! alone.
//!
//! The parameter values of a portal (a statement with values) count only if their message was
//! large.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::flow::{Budget, Reservation};
use proto::lock::lock;
use proto::model::ids::UserId;
use proto::{Error, ErrorCode};
use tokio::time::timeout;

use super::refusals::{Limit, Refusals};
use crate::principal::Principal;

/// The maximum time that a request waits for memory. Other requests may keep their memory without
/// end, for example in prepared statements.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A budget of memory, from which requests reserve bytes. Clones share the budget.
#[derive(Clone)]
pub struct MemoryBudget {
    limit: Limit,
    bytes_max: usize,
    budget: Budget,
    /// The budgets of the users that have reserved memory.
    users: Arc<Mutex<BTreeMap<UserId, Budget>>>,
    /// The user to whose budget reservations are added; `None` if they count for no user.
    user: Option<UserId>,
    refusals: Refusals,
}

/// Reserved memory. It becomes free when this value is dropped.
pub struct ReservedMemory {
    all: Reservation,
    of_user: Option<Reservation>,
}

impl MemoryBudget {
    /// Returns a budget of `bytes_max` bytes. `limit` is its setting, in MiB. Reservations count
    /// for no user.
    pub fn new(limit: Limit, bytes_max: usize, refusals: Refusals) -> Self {
        let (budget, users) = (Budget::new(bytes_max), Arc::default());
        Self { limit, bytes_max, budget, users, user: None, refusals }
    }

    /// Returns the same budget for reservations that also count for a principal.
    pub fn of(&self, principal: &Principal) -> Self {
        let user = match principal {
            Principal::Trusted => None,
            Principal::User(user) => Some(user.id),
        };
        Self { user, ..self.clone() }
    }

    /// Waits until memory is free and reserves it. Waits for at most `within`, the remaining time
    /// of the statement; returns an error after that.
    pub async fn reserve(
        &self,
        bytes: usize,
        within: Option<Duration>,
    ) -> proto::Result<ReservedMemory> {
        let wait = within.unwrap_or(WAIT_MAX).min(WAIT_MAX);
        let taking = async {
            // The user's budget is reserved first. A request that waits for the common budget
            // then has reserved nothing for which other users wait.
            let of_user = match self.user {
                Some(user) => Some(self.reserve_of_user(user, bytes).await),
                None => None,
            };
            ReservedMemory { all: self.budget.reserve(bytes).await, of_user }
        };
        timeout(wait, taking).await.map_err(|_| self.refusal(bytes))
    }

    /// Reserves memory if it is free at once; otherwise returns `None`.
    pub fn try_reserve(&self, bytes: usize) -> Option<ReservedMemory> {
        let of_user = match self.user {
            Some(user) => Some(self.try_reserve_of_user(user, bytes).ok()?),
            None => None,
        };
        Some(ReservedMemory { all: self.budget.try_reserve(bytes)?, of_user })
    }

    /// Waits until memory of a user's budget is free, and reserves it.
    async fn reserve_of_user(&self, user: UserId, bytes: usize) -> Reservation {
        match self.try_reserve_of_user(user, bytes) {
            Ok(room) => room,
            Err(budget) => budget.reserve(bytes).await,
        }
    }

    /// Reserves memory in a user's budget. If too little is free, returns the budget as the
    /// error, so that the caller can wait for it.
    fn try_reserve_of_user(&self, user: UserId, bytes: usize) -> Result<Reservation, Budget> {
        let mut users = lock(&self.users);
        if !users.contains_key(&user) {
            let whole = Budget::new(self.user_bytes_max());
            users.retain(|_, budget| budget.free_bytes() < whole.free_bytes());
            users.insert(user, whole);
        }
        let budget = &users[&user];
        // An unused budget is removed when another user arrives, so memory is reserved under the
        // lock.
        budget.try_reserve(bytes).ok_or_else(|| budget.clone())
    }

    /// Counts a refusal and returns its error.
    fn refusal(&self, bytes: usize) -> Error {
        let (wanted, most, own) = (bytes >> 10, self.bytes_max >> 10, self.user_bytes_max() >> 10);
        let what = format!(
            "{wanted} KiB of memory are wanted, and there was no room in time: clients may take {most} KiB together, and a user {own}"
        );
        self.refusals.refuse(self.limit, ErrorCode::OutOfRoom, what)
    }

    /// Returns the size of the complete budget in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Returns the maximum number of bytes that one user may reserve.
    pub fn user_bytes_max(&self) -> usize {
        self.bytes_max / 2
    }

    /// Returns the number of free bytes.
    pub fn free_bytes(&self) -> usize {
        self.budget.free_bytes()
    }
}

impl ReservedMemory {
    /// Releases a part of the reservation, so that `bytes` bytes remain reserved.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.all.shrink_to(bytes);
        if let Some(room) = &mut self.of_user {
            room.shrink_to(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::{LoggedInUser, Proof};

    fn user(id: u64) -> Principal {
        let (id, name) = (UserId(id), format!("u{id}"));
        Principal::User(Arc::new(LoggedInUser::new(id, name, Proof::Certificate, None)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_gets_half_of_the_memory() {
        let budget = MemoryBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
        let (ada, bob) = (budget.of(&user(1)), budget.of(&user(2)));
        let held = ada.reserve(400 << 10, None).await.expect("room");
        let also = ada.reserve(112 << 10, None).await.expect("room");
        let error = budget.of(&user(1)).reserve(1, None).await.err().expect("half is hers");
        assert!(error.message.contains("a user 512"), "{error}");
        let his = bob.reserve(500 << 10, None).await.expect("the other half");
        assert_eq!(budget.free_bytes(), 12 << 10);
        drop(also);
        ada.reserve(100 << 10, None).await.expect("room again");
        drop((held, his));
        let whole = ada.reserve(1 << 20, None).await.expect("larger than all of hers, alone");
        drop(whole);
        assert_eq!(budget.free_bytes(), 1 << 20);
        bob.reserve(1, None).await.expect("room");
        assert_eq!(lock(&budget.users).len(), 2, "ada is forgotten when the next one comes");
        budget.of(&user(3)).reserve(1, None).await.expect("room");
        assert_eq!(lock(&budget.users).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_memory() {
        let refusals = Refusals::default();
        let budget = MemoryBudget::new(Limit::SessionMemory, 1 << 20, refusals.clone());
        let mut first = budget.reserve(900 << 10, None).await.expect("room");
        let error = budget.reserve(200 << 10, Some(Duration::from_secs(1))).await.err();
        let error = error.expect("no room");
        assert_eq!(error.code.sqlstate(), "53200");
        assert!(error.hint.is_some_and(|hint| hint.contains("session_memory_total_mb")));
        let second = async {
            let began = tokio::time::Instant::now();
            let _room = budget.reserve(200 << 10, None).await.expect("room");
            assert_eq!(began.elapsed(), Duration::from_secs(5));
        };
        let shrinks = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            first.shrink_to(100 << 10);
        };
        tokio::join!(second, shrinks);
        assert_eq!(budget.free_bytes(), 924 << 10);
        drop(first);
        assert_eq!(budget.free_bytes(), 1 << 20);
        assert!(refusals.by_setting().any(|counted| counted == ("session_memory_total_mb", 1)));
    }
}
