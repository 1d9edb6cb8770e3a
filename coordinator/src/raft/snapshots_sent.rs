//! Snapshots in flight, which may be lost. The leader sends no entries to a member that waits for a
//! snapshot, so an unanswered snapshot is reported as failed after `RETRY_TICKS` and sent again.

/// Ticks after which an unanswered snapshot is sent again.
const RETRY_TICKS: u32 = 40;

/// The snapshots in flight: the receiver, and the ticks until the next attempt.
#[derive(Default)]
pub(super) struct SnapshotsSent(Vec<(u64, u32)>);

impl SnapshotsSent {
    /// Records that a snapshot was sent.
    pub fn add(&mut self, to: u64) {
        self.0.retain(|(known, _)| *known != to);
        self.0.push((to, RETRY_TICKS));
    }

    /// Advances time by one tick. Removes and returns the receivers whose snapshots are overdue.
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
