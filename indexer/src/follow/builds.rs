//! The builds of a follower, each from a backfill snapshot, beside the epochs, which are applied to it unseen. When an
//! applied epoch covers the snapshot's cut, it is shown. An index that joins the stream for the first time is built as a
//! whole; slices of one that other nodes may have are fetched from there, and built here where that is hopeless
//! ([`Follower::rebuild_hopeless`]), while the other slices of their index go on and answer.

use std::sync::Arc;

use proto::Result;
use proto::model::cut::Cut;
use proto::model::ids::{IndexId, SliceNo};
use proto::model::index::IndexInfo;

use super::backfill::{Build, Built, build};
use super::follower::{Follower, grouping};
use super::policy;

impl Follower {
    /// Fetches a snapshot for an index whose mutations are applied, unseen, from here on.
    pub(super) fn spawn_build(&mut self, index: &Arc<IndexInfo>, joined: Cut) {
        self.builds_begun += 1;
        let number = self.builds_begun;
        let fetch = build(self.context.clone(), Arc::clone(index), number, self.built.clone());
        let _task = self.context.env.spawn("build", fetch);
        let build = Build { number, info: Arc::clone(index), joined, snapshot: None, _task };
        self.builds.insert(index.id, build);
    }

    /// Builds from the source what was lost here and no other node gives. An index has one such build at a time; what
    /// is given up meanwhile waits for the next one.
    pub(super) async fn rebuild_hopeless(&mut self) -> Result<()> {
        // A resync's epoch makes up for a piece of the past that what is built here would lack.
        let Some(mark) = self.applied.clone().filter(|_| self.resync.is_none()) else {
            return Ok(());
        };
        for (id, slices) in self.incoming.hopeless(&self.context, self.bucket) {
            let Some(fed) = self.fed.get(&id).filter(|_| !self.builds.contains_key(&id)) else {
                continue;
            };
            // All that will be applied to them must have been evaluated for them.
            let covered =
                |slice: &SliceNo| fed.since.get(slice).is_some_and(|s| mark.cut.reaches(s));
            if !slices.iter().all(covered) {
                continue;
            }
            let (info, at) = (Arc::clone(&fed.info), Cut::clone(&mark.cut));
            tracing::warn!(index = %info.spec.name, ?slices, "no copy gives them: built from the source");
            let wanted = grouping(&info);
            self.context.fragments.begin_rebuild(Arc::clone(&info), &slices, wanted).await?;
            self.incoming.end_restores_of(id, &slices);
            self.spawn_build(&info, at);
            self.context.slices_changed();
        }
        Ok(())
    }

    /// Gives up the rebuilds that nobody brings to their end.
    pub(super) async fn drop_stale_rebuilds(&self) -> Result<()> {
        for (index, bucket) in self.context.fragments.rebuilds() {
            if bucket == self.bucket && !self.builds.contains_key(&index) {
                self.context.fragments.drop_rebuild(index).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn build_done(&mut self, done: Built) -> Result<()> {
        // What one that was given up had to say may come when the next one has begun.
        let build = self.builds.get_mut(&done.index).filter(|build| build.number == done.number);
        if let Some(build) = build {
            build.snapshot = Some(done.cut);
        }
        self.finish_builds().await
    }

    /// Shows the indexes whose snapshot an applied epoch covers.
    pub(super) async fn finish_builds(&mut self) -> Result<()> {
        let Some(mark) = self.applied.clone() else { return Ok(()) };
        self.begin_lost_builds_anew();
        let history = self.history.as_deref();
        let covered = |build: &Build| {
            build.snapshot.as_ref().is_some_and(|cut| policy::covers(history, &mark.cut, cut))
        };
        let ready: Vec<_> = self
            .builds
            .iter()
            .filter(|(_, build)| covered(build))
            .map(|(index, build)| (*index, build.info.generation))
            .collect();
        for (index, generation) in ready {
            self.builds.remove(&index);
            self.context.store.finish_build(index, generation, &mark).await?;
            self.context.slices_changed();
        }
        Ok(())
    }

    /// A snapshot of a history that is no more, or that ends before its build joined the stream, is fetched again.
    pub(super) fn begin_lost_builds_anew(&mut self) {
        let Some(logs) = self.history.clone() else { return };
        let lost = |build: &Build| {
            let snapshot = build.snapshot.as_ref();
            snapshot.is_some_and(|cut| policy::is_lost(&logs, cut, &build.joined))
        };
        let lost: Vec<IndexId> =
            self.builds.iter().filter(|(_, build)| lost(build)).map(|(index, _)| *index).collect();
        for index in lost {
            if let Some(Build { info, joined, .. }) = self.builds.remove(&index) {
                self.spawn_build(&info, joined);
            }
        }
    }
}
