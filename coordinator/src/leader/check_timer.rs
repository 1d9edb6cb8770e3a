//! A timer for the leader's periodic checks of the state and the heartbeats.

use super::plan::Plan;

/// A timer of a check that runs at most once per `EVERY_MS` milliseconds.
#[derive(Debug, Default)]
pub(super) struct CheckTimer<const EVERY_MS: u64> {
    last_ms: Option<u64>,
}

impl<const EVERY_MS: u64> CheckTimer<EVERY_MS> {
    /// Returns true if the next check is due, and starts the interval until the check after that.
    pub(super) fn is_due(&mut self, now_ms: u64) -> bool {
        if self.last_ms.is_some_and(|last_ms| now_ms < last_ms + EVERY_MS) {
            return false;
        }
        self.last_ms = Some(now_ms);
        true
    }

    /// Returns true if the next check is due, like `is_due`. Also makes the leader plan again in
    /// `EVERY_MS` milliseconds at the latest.
    pub(super) fn is_due_in(&mut self, plan: &mut Plan, now_ms: u64) -> bool {
        plan.plan_again_at(now_ms + EVERY_MS);
        self.is_due(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_due_after_the_interval() {
        let mut looks = CheckTimer::<100>::default();
        let due: Vec<u64> = (0..30).map(|n| 10 * n).filter(|ms| looks.is_due(*ms)).collect();
        assert_eq!(due, [0, 100, 200]);
        let mut plan = Plan::default();
        assert!(!looks.is_due_in(&mut plan, 290));
        assert_eq!(plan.next_ms, Some(390));
    }
}
