//! The comparisons of the store with the model during a history.

use std::sync::Arc;

use proto::model::ids::{Epoch, LocalIndexId, SliceNo};
use storage::{SliceStore, Snapshot};

use super::BUCKET;
use super::compare::{self, Depth, Finding, Pair, Verdict};
use super::driver::{Driver, wrong};
use super::history::Op;
use super::shape::Known;

/// A snapshot that is compared again later.
pub struct Held {
    real: Arc<dyn Snapshot>,
    model: Arc<dyn Snapshot>,
    known: Known,
    slices: Vec<SliceNo>,
    epoch: Epoch,
}

impl Driver {
    /// Takes a snapshot of both stores at an epoch, if both have it.
    pub(super) fn hold(&mut self, id: LocalIndexId, epoch: Epoch) {
        let known = &self.indexes[&id];
        let real = self.store().snapshot(id, epoch);
        if let (Ok(real), Ok(model)) = (real, self.model.snapshot(id, epoch)) {
            let slices = known.slices();
            self.held.push(Held { real, model, known: known.clone(), slices, epoch });
        }
        if self.held.len() > 4 {
            self.held.remove(0);
        }
    }

    /// Checks that the counters are consistent and that durable epochs do not decrease.
    pub(super) fn check_counters(&mut self) -> Verdict {
        let now = self.store().counters(BUCKET);
        if self.is_excused() {
            return Ok(());
        }
        let newest = self.marks.last().map_or(Epoch(0), |mark| mark.epoch);
        let ordered = now.staged >= now.committed
            && now.committed >= now.durable
            && now.durable >= now.stable;
        if !ordered || now.committed != newest || now.durable < self.durable {
            return wrong(format!("{now:?}, applied {newest}, durable was {}", self.durable));
        }
        self.durable = now.durable;
        Ok(())
    }

    /// Returns the epoch below which the store may refuse a read: the horizon, or a missed epoch. A
    /// crash may have removed the epoch after the missed one and left the raised floor.
    pub(super) fn refusable_below(&self) -> Epoch {
        let pairs = self.marks.windows(2).filter(|pair| pair[1].parent != pair[0].epoch);
        pairs.map(|pair| pair[1].epoch).max().unwrap_or_default().max(self.horizon)
    }

    /// Compares the store with the model.
    pub(super) fn check(&mut self, depth: Depth) -> Verdict {
        let (store, horizon) = (self.store(), self.refusable_below());
        let pair = Pair { real: &store, model: &self.model, horizon };
        pair.inventory()?;
        let trouble = store.progress().into_iter().find_map(|slice| slice.trouble);
        if let Some(trouble) = trouble.filter(|_| !self.is_excused()) {
            return wrong(format!("trouble without a cause: {trouble}"));
        }
        let newest = self.marks.last().map_or(Epoch(0), |mark| mark.epoch);
        for known in self.indexes.values() {
            for (n, mark) in self.marks.iter().rev().enumerate() {
                let picked = n == 0 || self.random.usize(0..self.marks.len()) < 2;
                if depth == Depth::Whole || picked {
                    let deep = if picked { depth } else { Depth::Glance };
                    pair.at(known, mark.epoch, deep, &mut self.random)?;
                }
            }
            pair.at(known, Epoch(newest.0 + 1), Depth::Glance, &mut self.random)?;
        }
        for held in &self.held {
            let (real, model) = (&*held.real, &*held.model);
            compare::snapshots(real, model, &held.known, &held.slices, depth, &mut self.random)
                .map_err(|finding| finding.at(&format!("held at epoch {}", held.epoch)))?;
        }
        Ok(())
    }

    /// Checks after a failed call that earlier epochs are unchanged, or that reading them fails
    /// too.
    pub(super) fn check_after_fault(&mut self, pending: Option<&Op>) -> Verdict {
        // The outcome for floors and slices is settled only after the store is opened again.
        let harmless = matches!(
            pending,
            None | Some(Op::Epoch { gap: false, .. } | Op::Flush | Op::Compact | Op::Regroup(..))
        );
        let applied = self.model.applied().first().map(|mark| mark.epoch);
        let (Some(applied), true) = (applied, harmless) else { return Ok(()) };
        let (store, horizon) = (self.store(), self.refusable_below());
        let pair = Pair { real: &store, model: &self.model, horizon };
        for known in self.indexes.values() {
            for mark in self.marks.iter().filter(|mark| mark.epoch <= applied) {
                match pair.at(known, mark.epoch, Depth::Glance, &mut self.random) {
                    Err(Finding::Failed(_)) | Ok(()) => {}
                    wrong => return wrong,
                }
            }
        }
        Ok(())
    }
}
