//! Builds of slices from the source. Each reads a backfill snapshot while epochs are applied to
//! its slices, which are not readable yet. When an applied epoch covers the snapshot's cut, the
//! slices become readable. An index that joins the stream for the first time is built with all of
//! its slices on the node. Slices that other nodes may have are copied from these nodes instead.
//! If that is impossible, they are rebuilt from the source ([`Follower::rebuild_lost_slices`]),
//! while the index's other slices stay readable.

use std::sync::Arc;

use proto::Result;
use proto::model::cut::Cut;
use proto::model::ids::{LocalIndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use storage::SliceStore;

use super::backfill::{Build, BuildCompletion, build};
use super::follower::{Follower, grouping};
use super::policy;

impl Follower {
    /// Starts a build of an index, which reads a snapshot of the source. The stream's mutations
    /// are applied to the index from the cut `joined` on, but the index is not readable yet.
    pub(super) fn spawn_build(&mut self, index: &Arc<IndexInfo>, joined: Cut) {
        self.builds_begun += 1;
        let number = self.builds_begun;
        let (context, info, built) = (self.context.clone(), Arc::clone(index), self.built.clone());
        // A build forgets what it has stored when it begins.
        let fetch = move || build(context.clone(), Arc::clone(&info), number, built.clone());
        let _task = self.context.env.spawn_restarted("build", fetch);
        let build = Build { number, info: Arc::clone(index), joined, snapshot: None, _task };
        self.builds.insert(index.local_id(), build);
    }

    /// Rebuilds slices from the source that cannot be copied from any other node. An index has
    /// one such build at a time. Slices that are lost later wait for the next build.
    pub(super) async fn rebuild_lost_slices(&mut self) -> Result<()> {
        // A rebuilt slice would lack the corrections that a running resync applies later.
        let Some(mark) = self.applied.clone().filter(|_| self.resync.is_none()) else {
            return Ok(());
        };
        for (id, slices) in self.incoming.hopeless_slices(&self.context, self.bucket) {
            let Some(fed) = self.fed.get(&id).filter(|_| !self.builds.contains_key(&id)) else {
                continue;
            };
            // Every mutation to be applied to these slices must have been evaluated for them.
            let covered =
                |slice: &SliceNo| fed.since.get(slice).is_some_and(|s| mark.cut.reaches(s));
            if !slices.iter().all(covered) {
                continue;
            }
            let (info, at) = (Arc::clone(&fed.info), Cut::clone(&mark.cut));
            tracing::warn!(index = %info.spec.name, ?slices, "no copy gives them: built from the source");
            let wanted = grouping(&info);
            self.context.store.begin_rebuild(Arc::clone(&info), &slices, wanted).await?;
            self.incoming.end_restores_of(id, &slices);
            self.spawn_build(&info, at);
            self.context.slices_changed();
        }
        Ok(())
    }

    /// Drops unfinished rebuilds of slices whose build task no longer exists.
    pub(super) async fn drop_stale_rebuilds(&self) -> Result<()> {
        for (index, bucket) in self.context.store.rebuilds() {
            if bucket == self.bucket && !self.builds.contains_key(&index) {
                self.context.store.drop_rebuild(index).await?;
            }
        }
        Ok(())
    }

    /// Handles the end of a build's snapshot. Ignores the report of an abandoned build.
    pub(super) async fn record_snapshot_end(&mut self, done: BuildCompletion) -> Result<()> {
        // The report of an abandoned build may arrive after the next build has begun.
        let build = self.builds.get_mut(&done.index).filter(|build| build.number == done.number);
        if let Some(build) = build {
            build.snapshot = Some(done.cut);
        }
        self.finish_builds().await
    }

    /// Makes the indexes readable whose snapshots are covered by the newest applied epoch.
    pub(super) async fn finish_builds(&mut self) -> Result<()> {
        let Some(mark) = self.applied.clone() else { return Ok(()) };
        self.restart_unusable_builds();
        let history = self.history.as_deref();
        let covered = |build: &Build| {
            build.snapshot.as_ref().is_some_and(|cut| {
                policy::covers(history, &mark.cut, cut) || plant::is(Plant::BuildUncovered)
            })
        };
        let ready: Vec<_> = self
            .builds
            .iter()
            .filter(|(_, build)| covered(build))
            .map(|(index, _)| *index)
            .collect();
        for index in ready {
            self.builds.remove(&index);
            self.context.store.finish_build(index, &mark).await?;
            self.context.slices_changed();
        }
        Ok(())
    }

    /// Restarts builds whose snapshot cannot be used: it belongs to a lost history, or ends
    /// before the cut from which the stream carries the build's mutations.
    pub(super) fn restart_unusable_builds(&mut self) {
        let Some(logs) = self.history.clone() else { return };
        let lost = |build: &Build| {
            let snapshot = build.snapshot.as_ref();
            snapshot.is_some_and(|cut| policy::is_snapshot_unusable(&logs, cut, &build.joined))
        };
        let lost: Vec<LocalIndexId> =
            self.builds.iter().filter(|(_, build)| lost(build)).map(|(index, _)| *index).collect();
        for index in lost {
            if let Some(Build { info, joined, .. }) = self.builds.remove(&index) {
                self.spawn_build(&info, joined);
            }
        }
    }
}
