//! Memory that the requests of clients take together.
//!
//! A request waits in order of arrival until there is room, up to a time limit; then it is refused. A request larger than the whole
//! budget passes alone.

use std::time::Duration;

use proto::flow::{Budget, Reservation};
use proto::{Error, ErrorCode, Result};
use tokio::time::timeout;

use super::refusals::{Limit, Refusals};

/// The longest wait for room. What takes the room may be kept without end, such as prepared statements.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A budget; clones share it.
#[derive(Clone)]
pub struct RoomBudget {
    limit: Limit,
    bytes_max: usize,
    budget: Budget,
    refusals: Refusals,
}

/// Memory that is taken; it is free again on drop.
pub struct Room(Reservation);

impl RoomBudget {
    /// A budget of so many bytes, which a setting in MiB says.
    pub fn new(limit: Limit, bytes_max: usize, refusals: Refusals) -> Self {
        Self { limit, bytes_max, budget: Budget::new(bytes_max), refusals }
    }

    /// Waits for room, at most as long as the statement may take.
    pub async fn take(&self, bytes: usize, within: Option<Duration>) -> Result<Room> {
        if let Some(room) = self.budget.try_reserve(bytes) {
            return Ok(Room(room));
        }
        let wait = within.unwrap_or(WAIT_MAX).min(WAIT_MAX);
        timeout(wait, self.budget.reserve(bytes)).await.map(Room).map_err(|_| self.refusal(bytes))
    }

    fn refusal(&self, bytes: usize) -> Error {
        let (wanted, most) = (bytes >> 10, self.bytes_max >> 10);
        let what = format!(
            "{wanted} KiB of memory are wanted, and there was no room in time: clients may take {most} KiB together"
        );
        self.refusals.refuse(self.limit, ErrorCode::OutOfRoom, what)
    }

    /// All bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The free bytes.
    pub fn free_bytes(&self) -> usize {
        self.budget.free_bytes()
    }
}

impl Room {
    /// Gives back all but so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.0.shrink_to(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_room_and_its_refusal_names_the_setting() {
        let refusals = Refusals::default();
        let budget = RoomBudget::new(Limit::SessionMemory, 1 << 20, refusals.clone());
        let mut first = budget.take(900 << 10, None).await.expect("room");
        let error = budget.take(200 << 10, Some(Duration::from_secs(1))).await.err();
        let error = error.expect("no room");
        assert_eq!(error.code.sqlstate(), "53200");
        assert!(error.hint.is_some_and(|hint| hint.contains("session_memory_total_mb")));
        let second = async {
            let began = tokio::time::Instant::now();
            let _room = budget.take(200 << 10, None).await.expect("room");
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
