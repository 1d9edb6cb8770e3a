//! The judge: observes all events and compares them with the true history. It keeps its own records of epochs, rollbacks and
//! leases, and shares no code with the product.

use std::collections::BTreeMap;

use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{Epoch, SliceId, VbucketId};
use proto::model::index::IndexState;
use proto::rpc::command::{Command, Outcome, Promotion};
use proto::{Error, ErrorCode};

use super::history::{History, VBUCKETS};
use super::store::Copy;
use super::world::World;
use crate::raft::Agreement;

/// Minimum time that an epoch stays readable after it is superseded: the horizon's distance, less the error of clocks and
/// ticks.
const KEPT_WHOLE_MS: u64 = 3_500;
/// A lease reported to the leader within this time must hold the horizon back, whatever the clocks show.
const LEASE_HEARD_MS: u64 = 8_000;

/// A completed rollback.
pub struct RolledBack {
    /// The newest dead epoch.
    pub to: Epoch,
    /// The oldest dead epoch.
    pub from: Epoch,
}

/// The records of the judge.
#[derive(Default)]
pub struct Judge {
    /// The agreement of the coordinators.
    pub members: Agreement,
    /// Every published epoch with its time.
    pub marks: BTreeMap<Epoch, (EpochMark, u64)>,
    /// The rollbacks, in order.
    pub rollbacks: Vec<RolledBack>,
    /// The violations; a run ends with the first one.
    pub violations: Vec<String>,
    /// Copies compared with the history.
    pub compared: u64,
    /// Entries of scans compared with the history.
    pub entries: u64,
}

impl Judge {
    /// Records a violation.
    pub fn wrong(&mut self, what: String) {
        self.violations.push(what);
    }

    /// True if a rollback has undone the epoch.
    pub fn is_dead(&self, epoch: Epoch) -> bool {
        self.rollbacks.iter().any(|back| back.from <= epoch && epoch <= back.to)
    }

    /// Judges an epoch that a member has published.
    pub fn published(&mut self, history: &History, mark: &EpochMark, now_ms: u64) {
        if let Some((known, _)) = self.marks.get(&mark.epoch) {
            if known != mark {
                self.wrong(format!("epoch {} was used twice: {known:?}, {mark:?}", mark.epoch));
            }
            return;
        }
        let last = self.marks.last_key_value().map(|(_, (mark, _))| mark.clone());
        self.marks.insert(mark.epoch, (mark.clone(), now_ms));
        let Some(last) = last else { return };
        if mark.epoch.0 != last.epoch.0 + 1 {
            self.wrong(format!("epoch {} after {}", mark.epoch, last.epoch));
        }
        if let Some(wrong) = self.wrong_points(&last, mark) {
            self.wrong(wrong);
        }
        let wrong = match mark.parent == last.epoch {
            true => follows(history, &last, mark),
            false => self.went_back(history, &last, mark),
        };
        self.violations.extend(wrong.or_else(|| split_statement(history, &last.cut, &mark.cut)));
    }

    /// Checks that each rollback point was a rollback point before, or was still above the horizon.
    fn wrong_points(&self, last: &EpochMark, mark: &EpochMark) -> Option<String> {
        let wrong = |point: &&Epoch| {
            let had = last.points.contains(point) || **point >= last.horizon;
            !had || self.is_dead(**point) || !self.marks.contains_key(point)
        };
        let point = mark.points.iter().find(wrong)?;
        Some(format!("epoch {}: rollback point {point} had been given up", mark.epoch))
    }

    /// Judges the first epoch after a rollback: the others above its parent are dead, and it has all surviving mutations.
    fn went_back(
        &mut self,
        history: &History,
        last: &EpochMark,
        mark: &EpochMark,
    ) -> Option<String> {
        let from = Epoch(mark.parent.0 + 1);
        self.rollbacks.push(RolledBack { from, to: last.epoch });
        let parent = self.marks.get(&mark.parent).map(|(mark, _)| mark.cut.clone());
        for vbucket in 0..usize::from(VBUCKETS) {
            let place = |cut: &Cut| history.find(vbucket, cut.get(VbucketId(vbucket as u16)));
            let (Some(before), Some(now)) = (place(&last.cut), place(&mark.cut)) else {
                return Some(format!("epoch {} ends where nothing ever was", mark.epoch));
            };
            let kept = parent.as_ref().map_or(Some(0), |cut| place(cut)).unwrap_or(0);
            if !history.has(vbucket, now, kept) {
                return Some(format!("epoch {} has not all of its parent", mark.epoch));
            }
            let tip = history.tip(vbucket);
            let survived = history.last_common(vbucket, before, tip);
            if !history.mutation(vbucket, now).lost && !history.has(vbucket, now, survived) {
                return Some(format!("epoch {} lacks what has survived", mark.epoch));
            }
        }
        None
    }

    /// Judges a copy: its content at an epoch equals the history.
    pub fn shows(&mut self, history: &History, slice: SliceId, copy: &Copy, mark: &EpochMark) {
        self.compared += 1;
        let slices = copy.info.topology.placement.len();
        let truth = history.sum(&mark.cut, usize::from(slice.slice.0), slices);
        if truth != Some(copy.sum) {
            self.wrong(format!("slice {slice} does not show epoch {}", mark.epoch));
        }
    }

    /// Judges a scan: its rows equal the history at its epoch.
    pub fn scanned(&mut self, history: &History, epoch: Epoch, rows: &[(u16, u32)]) {
        let Some((mark, _)) = self.marks.get(&epoch) else {
            return self.wrong(format!("a scan reads epoch {epoch}, which nobody published"));
        };
        self.entries += rows.len() as u64;
        let mut shown: Vec<(u16, u32)> = rows.to_vec();
        shown.sort_unstable();
        if !shown.iter().copied().eq(history.entries(&mark.cut)) {
            self.wrong(format!("a scan at epoch {epoch} shows {shown:?}"));
        }
    }

    /// Judges an answer to the client: each name is created once and dropped once.
    pub fn answered(&mut self, command: &Command, outcome: &Outcome) {
        let Outcome::Refused(Error { code, .. }) = outcome else { return };
        let twice = match command {
            Command::CreateIndex(_) | Command::CreateBucket(_) => *code == ErrorCode::Exists,
            Command::DropIndex(_) => *code == ErrorCode::Changed,
            _ => false,
        };
        if twice {
            self.wrong(format!("{command:?} was done twice: {outcome:?}"));
        }
    }
}

/// Checks that an epoch continues the last one.
fn follows(history: &History, last: &EpochMark, mark: &EpochMark) -> Option<String> {
    if mark.horizon < last.horizon {
        return Some(format!("the horizon went back at epoch {}", mark.epoch));
    }
    let leads_on = |vbucket: usize| {
        let place = |cut: &Cut| history.find(vbucket, cut.get(VbucketId(vbucket as u16)));
        let places = place(&last.cut).zip(place(&mark.cut));
        places.is_some_and(|(before, now)| history.has(vbucket, now, before))
    };
    let broken = (0..usize::from(VBUCKETS)).find(|vbucket| !leads_on(*vbucket))?;
    Some(format!("vbucket {broken} of epoch {} does not lead on from the last", mark.epoch))
}

/// Checks that a cut does not split a surviving statement, among the mutations since another cut.
fn split_statement(history: &History, before: &Cut, cut: &Cut) -> Option<String> {
    let end = |vbucket: usize, cut: &Cut| {
        history.find(vbucket, cut.get(VbucketId(vbucket as u16))).unwrap_or(0)
    };
    for vbucket in 0..usize::from(VBUCKETS) {
        let mut at = end(vbucket, cut);
        let stop = history.last_common(vbucket, at, end(vbucket, before));
        while at != stop {
            let mutation = history.mutation(vbucket, at);
            for (other, part) in &history.statements[mutation.statement] {
                let lost = history.mutation(*other, *part).lost;
                if !lost && !history.has(*other, end(*other, cut), *part) {
                    return Some(format!("statement {} is split by a cut", mutation.statement));
                }
            }
            at = mutation.parent;
        }
    }
    None
}

impl World {
    /// Judges the state of a member whose state has changed: its new epochs, and its moves.
    pub fn state_changed(&mut self, at: usize) {
        self.judge_damage(at);
        let Some(running) = &mut self.members[at].running else { return };
        let view = running.replica.view();
        if view.state.cas() < running.cas {
            self.judge.wrong(format!("cas of member {} went back", at + 1));
        }
        running.cas = view.state.cas();
        let newest = self.judge.marks.last_key_value().map_or(Epoch(0), |(epoch, _)| *epoch);
        for (_, bucket) in view.state.buckets() {
            let last = bucket.epochs.last();
            // The epochs of a lagging member were judged already.
            let new = bucket.epochs.after(Epoch(newest.0.min(last.epoch.0 - 1)));
            for mark in new {
                self.judge.published(&self.source.history, mark, self.now_ms);
                self.trace ^= u64::from(mark.cut.get(VbucketId(0)).seqno.0 as u32);
                self.trace = self.trace.wrapping_mul(0x0100_0000_01b3).rotate_left(7);
            }
        }
    }

    /// Judges a promotion: its horizon passes no lease reported to the leader, no epoch that new scans may still choose, and no
    /// epoch that an index needs to serve.
    pub fn judge_horizons(&mut self, at: usize, promotions: &[Promotion]) {
        let now_ms = self.now_ms;
        let Some((leading, replica, _)) = self.leading(at) else { return };
        let heard = |heard_ms: u64| now_ms.saturating_sub(heard_ms) < LEASE_HEARD_MS;
        let reported: Vec<Epoch> = leading
            .reported_leases
            .iter()
            .filter(|(_, ms)| heard(**ms))
            .map(|(epoch, _)| *epoch)
            .collect();
        let view = replica.view();
        for promotion in promotions {
            let Some(bucket) = view.state.bucket(promotion.bucket) else { continue };
            let (horizon, reached) = (promotion.horizon, bucket.epochs.last().horizon);
            if horizon <= reached {
                continue;
            }
            let leased = self.router.leased().filter(|epoch| *epoch >= reached);
            if let Some(passed) = leased.filter(|e| reported.contains(e)).find(|e| horizon > *e) {
                self.judge.wrong(format!("horizon {horizon} passes {passed}, which is leased"));
            }
            let before = now_ms.saturating_sub(KEPT_WHOLE_MS);
            let mut old = self.judge.marks.iter().filter(|(_, (_, ms))| *ms <= before);
            let kept = old.next_back().map_or(Epoch(1), |(epoch, _)| *epoch);
            if horizon > kept {
                self.judge.wrong(format!("horizon {horizon} passes {kept}, just superseded"));
            }
            for index in view.state.indexes().map(|record| &record.info) {
                if index.state != IndexState::Maintenance || index.bucket != promotion.bucket {
                    continue;
                }
                let reach = |node: &proto::model::ids::NodeId| self.reach_of(*node);
                let best = |nodes: &Vec<_>| nodes.iter().map(reach).max().unwrap_or_default();
                let servable = index.topology.placement.iter().map(best).min();
                if servable.is_some_and(|servable| horizon > servable.max(reached)) {
                    self.judge.wrong(format!("horizon {horizon} passes what {} serves", index.id));
                }
            }
        }
    }
}
