//! The faults of a run, and the checks after they have ended.
//!
//! | fault | what happens |
//! |---|---|
//! | `member_crash` | a member loses unwritten data, and restarts |
//! | `member_cut` | a member is unreachable for a while |
//! | `indexer_crash` | an indexer loses data that was not durable, and restarts |
//! | `source_loss` | the source restarts with fewer statements, or one vbucket with fewer mutations |
//! | `source_restart` | the source restarts with everything, on new branches |
//! | `source_down` | the source does not answer for a while |
//! | `link` | messages are lost, late, out of order and repeated |
//! | `clock_jump` | a member's clock jumps; all clocks drift continuously |

use proto::model::index::IndexState;

use super::history::VBUCKETS;
use super::world::{BUCKET, Broken, Event, INDEXERS, World};
use crate::raft::MEMBERS;

/// The maximum jump of a clock, in milliseconds.
const JUMP_MS_MAX: i64 = 3_600_000;

impl World {
    /// Starts a fault, and schedules the next one.
    pub fn fault(&mut self) {
        if self.broken.over {
            return;
        }
        let ms = self.random.u64(200..1_500);
        self.after(ms, Event::Fault);
        let kind = match self.random.u32(..20) {
            0..3 => self.crash_member(),
            3 => {
                self.broken.cut = Some(MEMBERS[self.random.usize(..MEMBERS.len())]);
                "member_cut"
            }
            4..7 => self.crash_indexer(),
            7..11 => self.lose(),
            11 => {
                self.source.restart();
                self.end_streams();
                "source_restart"
            }
            12 => {
                self.source.down_until_ms = self.now_ms + self.random.u64(100..3_000);
                "source_down"
            }
            13..15 => {
                self.broken.loss = self.random.u32(1..25);
                self.broken.slow_ms = self.random.u64(1..800);
                "link"
            }
            15 => {
                let at = self.random.usize(..MEMBERS.len());
                self.members[at].jump_ms = self.random.i64(-JUMP_MS_MAX..JUMP_MS_MAX);
                "clock_jump"
            }
            _ => {
                // The previous fault ends, and nothing is broken for a while.
                self.broken = Broken::default();
                return;
            }
        };
        *self.faults.entry(kind).or_default() += 1;
    }

    fn crash_member(&mut self) -> &'static str {
        let at = self.random.usize(..MEMBERS.len());
        self.members[at].crash(&mut self.random);
        let ms = self.random.u64(20..2_500);
        self.after(ms, Event::StartMember(at));
        "member_crash"
    }

    /// Starts a member unless it runs.
    pub fn start_member(&mut self, at: usize) {
        if self.members[at].running.is_none() {
            self.members[at].start(self.seed);
        }
    }

    fn crash_indexer(&mut self) -> &'static str {
        let at = self.random.usize(..INDEXERS.len());
        if self.indexers[at].up {
            self.indexers[at].crash();
            self.source.streams.remove(&INDEXERS[at]);
            let ms = self.delay_ms();
            self.after(ms, Event::Lost(INDEXERS[at]));
            let down_ms = match self.random.u32(..4) {
                0 => self.random.u64(2_000..8_000),
                _ => self.random.u64(50..2_000),
            };
            self.after(down_ms, Event::StartIndexer(at));
        }
        "indexer_crash"
    }

    /// Starts an indexer unless it runs.
    pub fn start_indexer(&mut self, at: usize) {
        if !self.indexers[at].up {
            self.indexers[at].up = true;
            self.indexers[at].news = true;
            self.after(50, Event::Connect(at));
        }
    }

    fn lose(&mut self) -> &'static str {
        let count = match self.random.u32(..4) {
            0 => self.random.usize(1..80),
            _ => self.random.usize(1..8),
        };
        match self.random.bool() {
            true => self.source.lose_statements(count),
            false => self.source.lose_of_vbucket(self.random.usize(..usize::from(VBUCKETS)), count),
        }
        self.source.down_until_ms = self.now_ms + self.random.u64(..400);
        self.end_streams();
        "source_loss"
    }

    /// Ends all faults and restarts everything that is down.
    pub fn end_faults(&mut self) {
        // Losses so far are still reported, once.
        self.source.write(&mut self.random);
        self.broken = Broken { over: true, ..Broken::default() };
        self.source.down_until_ms = 0;
        (0..MEMBERS.len()).for_each(|at| self.start_member(at));
        (0..INDEXERS.len()).for_each(|at| self.start_indexer(at));
    }

    /// Returns a text about the difference between the cluster and the state that it must reach
    /// after the faults; `None` if there is none.
    pub fn not_healed(&self) -> Option<String> {
        let leads = |member: &&super::members::Member| {
            member.running.as_ref().is_some_and(|running| running.leading.is_some())
        };
        let Some(leader) = self.members.iter().find(leads) else { return Some("no leader".into()) };
        let replica = &leader.running.as_ref()?.replica;
        let view = replica.view();
        let Some(bucket) = view.state.bucket(BUCKET) else { return Some("no bucket".into()) };
        if let Some(rollback) = &bucket.info.rollback {
            return Some(format!("a rollback in {}", rollback.stage.name()));
        }
        let last = bucket.epochs.last();
        if *last.cut != *self.source.durable() {
            return Some(format!("epoch {} ends before the source does", last.epoch));
        }
        for indexer in &self.indexers {
            if !indexer.copies.is_empty() && indexer.applied.as_ref() != Some(last) {
                let applied = indexer.applied_epoch();
                return Some(format!("node {} at epoch {applied} of {}", indexer.id, last.epoch));
            }
        }
        let waits = |state| state != IndexState::Maintenance && state != IndexState::Pending;
        let mut infos = view.state.indexes().map(|record| &record.info);
        let building = infos.find(|info| waits(info.state));
        building.map(|info| format!("index {} in {}", info.id, info.state.name()))
    }
}
