//! A memory budget in bytes: a task reserves memory before it uses it, and waits in order of
//! arrival until enough of the budget is free.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of reservations in bytes; each reservation is rounded up to it.
const UNIT_BYTES: usize = 1024;

/// A budget of bytes; clones share it.
#[derive(Clone)]
pub struct Budget {
    units: Arc<Semaphore>,
    total_units: u32,
}

/// Reserved bytes of a budget; released when dropped.
#[must_use = "dropping a reservation gives it back"]
pub struct Reservation {
    permit: OwnedSemaphorePermit,
}

impl Reservation {
    /// Releases all but `bytes` of the reservation.
    pub fn shrink_to(&mut self, bytes: usize) {
        let kept_units = bytes.div_ceil(UNIT_BYTES).max(1);
        let given_back = self.permit.num_permits().saturating_sub(kept_units);
        drop(self.permit.split(given_back));
    }
}

impl Budget {
    /// Creates a budget of `bytes`, at least one unit.
    pub fn new(bytes: usize) -> Self {
        let total_units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX >> 4).max(1);
        let total_units = total_units.min(u32::MAX >> 4);
        Self { units: Arc::new(Semaphore::new(total_units as usize)), total_units }
    }

    fn units(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.total_units)
    }

    /// Waits until `bytes` are free, and reserves them. A request for more than the complete
    /// budget is granted when nothing else is reserved, so that a single very large item is
    /// possible.
    pub async fn reserve(&self, bytes: usize) -> Reservation {
        let permit = Arc::clone(&self.units)
            .acquire_many_owned(self.units(bytes))
            .await
            .expect("the semaphore is never closed");
        Reservation { permit }
    }

    /// Reserves bytes without waiting; `None` if too few are free.
    pub fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let permit = Arc::clone(&self.units).try_acquire_many_owned(self.units(bytes)).ok()?;
        Some(Reservation { permit })
    }

    /// Returns the number of free bytes.
    pub fn free_bytes(&self) -> usize {
        self.units.available_permits() * UNIT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_item_above_the_budget_passes_alone() {
        let budget = Budget::new(10 * UNIT_BYTES);
        let all =
            budget.try_reserve(usize::MAX / 2).expect("an empty budget grants one large item");
        assert!(budget.try_reserve(1).is_none(), "nothing is left beside it");
        drop(all);
        assert_eq!(budget.free_bytes(), 10 * UNIT_BYTES);
    }

    #[test]
    fn a_reservation_gives_back_what_it_no_longer_needs() {
        let budget = Budget::new(10 * UNIT_BYTES);
        let mut held = budget.try_reserve(8 * UNIT_BYTES).expect("room");
        held.shrink_to(UNIT_BYTES + 1);
        assert_eq!(budget.free_bytes(), 8 * UNIT_BYTES);
        held.shrink_to(9 * UNIT_BYTES);
        assert_eq!(budget.free_bytes(), 8 * UNIT_BYTES, "it never grows");
        drop(held);
        assert_eq!(budget.free_bytes(), 10 * UNIT_BYTES);
    }
}
