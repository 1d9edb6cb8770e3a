//! The judge, which observes all events and compares them with the true history. The judge has its
//! own records of epochs, rollbacks and leases, and shares no code with the product.

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

/// The minimum time for which an epoch remains readable after a newer one is published, in
/// milliseconds: the distance of the horizon, less the errors of clocks and ticks.
const KEPT_WHOLE_MS: u64 = 3_500;
/// The age of a lease's report, in milliseconds, up to which the lease must hold the horizon back
/// with any clock errors.
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
    /// Every published epoch with its time in milliseconds.
    pub marks: BTreeMap<Epoch, (EpochMark, u64)>,
    /// The rollbacks, in order.
    pub rollbacks: Vec<RolledBack>,
    /// The violations. A run ends after the first.
    pub violations: Vec<String>,
    /// The number of copies that were compared with the history.
    pub compared: u64,
    /// The number of scanned entries that were compared with the history.
    pub entries: u64,
}

impl Judge {
    /// Records a violation.
    pub fn wrong(&mut self, what: String) {
        self.violations.push(what);
    }

    /// True if a rollback has removed the epoch.
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

    /// Returns a violation if a rollback point was neither a rollback point before nor above the
    /// horizon.
    fn wrong_points(&self, last: &EpochMark, mark: &EpochMark) -> Option<String> {
        let wrong = |point: &&Epoch| {
            let had = last.points.contains(point) || **point >= last.horizon;
            !had || self.is_dead(**point) || !self.marks.contains_key(point)
        };
        let point = mark.points.iter().find(wrong)?;
        Some(format!("epoch {}: rollback point {point} had been given up", mark.epoch))
    }

    /// Judges the first epoch after a rollback: all other epochs after its parent must be dead, and
    /// it must contain all surviving mutations.
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

    /// Judges a copy, whose content at an epoch must equal the history.
    pub fn shows(&mut self, history: &History, slice: SliceId, copy: &Copy, mark: &EpochMark) {
        self.compared += 1;
        let slices = copy.info.topology.placement.len();
        let truth = history.sum(&mark.cut, usize::from(slice.slice.0), slices);
        if truth != Some(copy.sum) {
            self.wrong(format!("slice {slice} does not show epoch {}", mark.epoch));
        }
    }

    /// Judges a scan, whose rows must equal the history at its epoch.
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

    /// Judges an answer to the client: each name may be created once and dropped once.
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

/// Returns a violation if an epoch does not continue the last one.
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

/// Returns a violation if a cut splits a surviving statement, among the mutations after the cut
/// `before`.
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
    /// Judges the new state of a member: its new epochs, and its moves.
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

    /// Judges a promotion. Its horizon must not be above a lease that was reported to the leader,
    /// an epoch that new scans may choose, or an epoch that an index needs to serve.
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
