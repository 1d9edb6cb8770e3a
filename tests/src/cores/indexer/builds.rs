//! Builds of the model: an index that joins the stream is built from a snapshot, and becomes readable when an applied
//! epoch covers that snapshot.

use std::rc::Rc;
use std::sync::Arc;

use indexer::follow::policy;
use proto::model::cut::Cut;
use proto::model::ids::{LocalIndexId, SliceId};
use proto::model::index::IndexInfo;

use super::super::history::slice_of;
use super::{Copy, Indexer};

/// A build of slices, with its snapshot after it has arrived.
pub struct Build {
    info: Arc<IndexInfo>,
    /// The slices that are being built.
    slices: Vec<SliceId>,
    number: u64,
    /// The cut from which the stream carries the index's mutations.
    pub joined: Cut,
    snapshot: Option<(Cut, Vec<(u16, u32)>)>,
}

impl Indexer {
    /// Builds the slices of an index that the node lacks. A build to which slices are added
    /// restarts; readable slices are kept.
    pub(super) fn build_if_missing(&mut self, index: Arc<IndexInfo>, joined: Cut) {
        let id = index.local_id();
        let mine = index.topology.slices_on(self.id).into_iter().map(|slice| id.slice(slice));
        let is_readable =
            |slice: &SliceId| self.copies.get(slice).is_some_and(|copy| copy.floor.is_some());
        let missing: Vec<SliceId> = mine.filter(|slice| !is_readable(slice)).collect();
        let is_built = |slice: &SliceId| {
            self.builds.get(&id).is_some_and(|build| build.slices.contains(slice))
        };
        if missing.iter().all(is_built) {
            return;
        }
        for slice in &missing {
            self.copies.insert(*slice, Rc::new(Copy::new(Arc::clone(&index))));
        }
        self.last_build += 1;
        let number = self.last_build;
        self.to_fetch.push((id, number));
        let build = Build { info: index, slices: missing, number, joined, snapshot: None };
        self.builds.insert(id, build);
        self.save();
    }

    /// Delivers the snapshot of an index being built.
    pub fn fetched(&mut self, index: LocalIndexId, number: u64, snapshot: (Cut, Vec<(u16, u32)>)) {
        if let Some(build) = self.builds.get_mut(&index).filter(|build| build.number == number) {
            build.snapshot = Some(snapshot);
            self.finish_builds();
        }
    }

    /// Makes the indexes readable whose snapshot an applied epoch covers; requests lost snapshots
    /// again.
    pub(super) fn finish_builds(&mut self) {
        let Some(mark) = self.applied.clone() else { return };
        for (index, build) in &mut self.builds {
            let lost = |(cut, _): &(Cut, _)| {
                self.history
                    .as_ref()
                    .is_some_and(|logs| policy::is_snapshot_unusable(logs, cut, &build.joined))
            };
            if build.snapshot.as_ref().is_some_and(lost) {
                build.snapshot = None;
                self.to_fetch.push((*index, build.number));
            }
        }
        let history = self.history.as_deref();
        let covered = |build: &Build| {
            let snapshot = build.snapshot.as_ref();
            snapshot.is_some_and(|(cut, _)| policy::covers(history, &mark.cut, cut))
        };
        let ready: Vec<LocalIndexId> =
            self.builds.iter().filter(|(_, b)| covered(b)).map(|(index, _)| *index).collect();
        for index in ready {
            let Some(Build { info, slices: built, snapshot: Some((_, documents)), .. }) =
                self.builds.remove(&index)
            else {
                continue;
            };
            let slices = info.topology.placement.len();
            let copies = self.copies.iter_mut();
            for (slice, copy) in copies.filter(|(slice, _)| built.contains(slice)) {
                let of_slice = |doc: u16| slice_of(doc, slices);
                let mut mine = documents.clone();
                mine.retain(|(doc, _)| of_slice(*doc) == usize::from(slice.slice.0));
                let copy = Rc::make_mut(copy);
                copy.put_below(&mine);
                (copy.floor, copy.newest) = (Some(mark.epoch), mark.epoch);
            }
            self.news = true;
            self.save();
        }
    }
}
