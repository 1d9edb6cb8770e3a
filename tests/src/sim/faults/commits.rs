//! Faults at the stages of commits over two buckets. Such a commit takes a few round trips, so that
//! random times rarely fall between two of its stages.

use std::sync::atomic::Ordering;
use std::time::Duration;

use turmoil::Sim;

use super::driver::{Faults, is_projector, note};
use crate::sim::Shared;
use crate::sim::cluster::hosts::Hosts;

/// The maximum downtime of a process, in milliseconds: some sessions wait for it, others end
/// before.
const DOWN_MS_MAX: u64 = 2_500;

impl Faults {
    /// Ends a process, mostly a projector, when a commit has reached a stage.
    pub(super) fn break_at_commit(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        let before = self.commit_stages;
        self.commit_stages = hosts.commit_stages.load(Ordering::Relaxed);
        if self.commit_stages == before || now < self.next_at_commit {
            return;
        }
        let random = &mut self.at_commits;
        if random.u8(..3) > 0 {
            return;
        }
        self.next_at_commit = now + Duration::from_millis(random.u64(500..3_000));
        let end = now + Duration::from_millis(random.u64(100..DOWN_MS_MAX));
        let of_source = random.u8(..3) > 0;
        let names: Vec<&String> =
            hosts.all.keys().filter(|name| is_projector(name) == of_source).collect();
        let name = names[random.usize(..names.len())].clone();
        if !self.is_down(&name) {
            self.crash(&name, end, sim, hosts);
            note(summary, "crash_at_commit", now, end);
        }
    }
}
