//! The builds of a follower, each from a backfill snapshot, beside the epochs, which are applied to it unseen. When an
//! applied epoch covers the snapshot's cut, it is shown. An index that joins the stream for the first time is built as a
//! whole; slices of one that other nodes may have are fetched from there, and built here where that is hopeless
//! ([`Follower::rebuild_hopeless`]), while the other slices of their index go on and answer.

use std::sync::Arc;

use futures::StreamExt;
use proto::env::Task;
use proto::model::cut::Cut;
use proto::model::ids::{IndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::api::ResultStream;
use proto::rpc::mutation::{BackfillMessage, BackfillRequest};
use proto::{Error, Result};

use super::{Follower, Shared, grouping, rules};

/// An index that is being built.
pub(super) struct Build {
    /// Tells it from earlier ones of the index.
    number: u64,
    pub info: Arc<IndexInfo>,
    /// From here on the stream brings what is new, without a gap.
    pub joined: Cut,
    /// The snapshot's cut, once all its documents are in the store.
    pub snapshot: Option<Cut>,
    _task: Task,
}

/// All documents of a build's snapshot are in the store.
pub(super) struct Built {
    index: IndexId,
    number: u64,
    cut: Cut,
}

impl Follower {
    /// Fetches a snapshot for an index whose mutations are applied, unseen, from here on.
    pub(super) fn spawn_build(&mut self, index: &Arc<IndexInfo>, joined: Cut) {
        self.builds_begun += 1;
        let number = self.builds_begun;
        let fetch = build(self.shared.clone(), Arc::clone(index), number, self.built.clone());
        let _task = self.shared.env.spawn("build", fetch);
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
        for (id, slices) in self.shared.incoming.hopeless(&self.shared, self.bucket) {
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
            self.shared.fragments.begin_rebuild(Arc::clone(&info), &slices, wanted).await?;
            self.shared.incoming.end_restores_of(id, &slices);
            self.spawn_build(&info, at);
            self.shared.slices_changed();
        }
        Ok(())
    }

    /// Gives up the rebuilds that nobody brings to their end.
    pub(super) async fn drop_stale_rebuilds(&self) -> Result<()> {
        for (index, bucket) in self.shared.fragments.rebuilds() {
            if bucket == self.bucket && !self.builds.contains_key(&index) {
                self.shared.fragments.drop_rebuild(index).await?;
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
            build.snapshot.as_ref().is_some_and(|cut| rules::covers(history, &mark.cut, cut))
        };
        let ready: Vec<_> = self
            .builds
            .iter()
            .filter(|(_, build)| covered(build))
            .map(|(index, build)| (*index, build.info.generation))
            .collect();
        for (index, generation) in ready {
            self.builds.remove(&index);
            self.shared.store.finish_build(index, generation, &mark).await?;
            self.shared.slices_changed();
        }
        Ok(())
    }
}

/// Fetches a backfill snapshot into the store, again from the beginning after an error.
async fn build(
    shared: Shared,
    info: Arc<IndexInfo>,
    number: u64,
    built: async_channel::Sender<Built>,
) {
    loop {
        match backfill(&shared, &info).await {
            Ok(cut) => {
                let done = Built { index: info.id, number, cut };
                // The follower is gone only when this task is cancelled too.
                let _ = built.send(done).await;
                return;
            }
            Err(error) => {
                tracing::warn!(index = %info.spec.name, %error, "backfill begins anew");
                tokio::time::sleep(shared.config.retry).await;
            }
        }
    }
}

async fn backfill(shared: &Shared, info: &IndexInfo) -> Result<Cut> {
    let mut stream = snapshot(shared, info).await?;
    let mut cut = None;
    while let Some(message) = stream.next().await {
        match message? {
            BackfillMessage::Begin { cut: at } => {
                shared.store.begin_backfill(info.id, info.generation).await?;
                cut = Some(at);
            }
            BackfillMessage::Documents(body) => {
                shared.store.backfill(info.id, info.generation, body).await?;
            }
            BackfillMessage::End => {
                return cut.ok_or_else(|| Error::internal("a backfill without a beginning"));
            }
        }
    }
    Err(Error::unavailable("the backfill stream ended before its end"))
}

/// A snapshot of the source, as the node's slices of an index have it.
pub(super) async fn snapshot(
    shared: &Shared,
    info: &IndexInfo,
) -> Result<ResultStream<BackfillMessage>> {
    let request = BackfillRequest {
        node: shared.config.node.id,
        index: info.id,
        generation: info.generation,
        revision: info.revision,
        vbuckets: None,
    };
    shared.source(info.bucket)?.backfill(request).await
}
