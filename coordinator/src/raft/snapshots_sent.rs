//! The snapshots that the leader has sent and that are not acknowledged. A snapshot may be lost,
//! and the leader sends no entries to a member that waits for one. So a snapshot without an
//! answer is reported as failed after `RETRY_TICKS` and sent again.

/// The number of ticks after which a snapshot without an answer is sent again.
const RETRY_TICKS: u32 = 40;

/// The snapshots without an answer: each has its receiver, and the ticks until it is sent again.
#[derive(Default)]
pub(super) struct SnapshotsSent(Vec<(u64, u32)>);

impl SnapshotsSent {
    /// Records that a snapshot was sent to the member `to`.
    pub fn add(&mut self, to: u64) {
        self.0.retain(|(known, _)| *known != to);
        self.0.push((to, RETRY_TICKS));
    }

    /// Advances time by one tick. Removes and returns the receivers to which a snapshot must be
    /// sent again.
    pub fn tick(&mut self) -> Vec<u64> {
        let mut overdue = Vec::new();
        self.0.retain_mut(|(to, ticks)| {
            *ticks -= 1;
            if *ticks == 0 {
                overdue.push(*to);
            }
            *ticks > 0
        });
        overdue
    }
}
