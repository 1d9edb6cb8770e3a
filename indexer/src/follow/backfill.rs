//! Builds from a snapshot of the source: a separate task reads the snapshot into the storage
//! engine.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt;
use proto::env::Task;
use proto::lock::lock;
use proto::model::cut::Cut;
use proto::model::ids::LocalIndexId;
use proto::model::index::IndexInfo;
use proto::rpc::api::ResultStream;
use proto::rpc::mutation::{BackfillMessage, BackfillRequest};
use proto::{Error, Result};
use storage::SliceStore;
use tokio::time::Instant;

use crate::build_pace::BuildPace;
use crate::context::NodeContext;

/// A build of an index's slices from a snapshot of the source, in progress.
pub(super) struct Build {
    /// A number that distinguishes the build from earlier builds of the index.
    pub(super) number: u64,
    pub info: Arc<IndexInfo>,
    /// The cut from which the stream carries all mutations of the index.
    pub joined: Cut,
    /// The cut of the snapshot, once all documents of the snapshot are stored.
    pub snapshot: Option<Cut>,
    pub(super) _task: Task,
}

/// Reports that all documents of a build's snapshot are stored.
pub(super) struct BuildCompletion {
    pub(super) index: LocalIndexId,
    pub(super) number: u64,
    pub(super) cut: Cut,
}

/// Reads a snapshot of the source into the storage engine, and reports the end. After an error,
/// restarts from the beginning.
pub(super) async fn build(
    context: NodeContext,
    info: Arc<IndexInfo>,
    number: u64,
    built: async_channel::Sender<BuildCompletion>,
) {
    loop {
        match backfill(&context, &info).await {
            Ok(cut) => {
                let done = BuildCompletion { index: info.local_id(), number, cut };
                // This fails only if the follower has ended, and then this task is cancelled too.
                let _ = built.send(done).await;
                return;
            }
            Err(error) => {
                tracing::warn!(index = %info.spec.name, %error, "backfill begins anew");
                tokio::time::sleep(context.config.retry).await;
            }
        }
    }
}

/// Reads a snapshot of the source into the storage engine once. Returns the snapshot's cut.
async fn backfill(context: &NodeContext, info: &IndexInfo) -> Result<Cut> {
    let mut stream = snapshot(context, info).await?;
    let (mut cut, mut pace) = (None, BuildPace::begin(Instant::now()));
    while let Some(message) = stream.next().await {
        match message? {
            BackfillMessage::Begin { cut: at } => {
                context.store.begin_backfill(info.local_id()).await?;
                context.backfills.fetch_add(1, Ordering::Relaxed);
                pace = BuildPace::begin(Instant::now());
                lock(&context.builds).insert(info.local_id(), pace);
                cut = Some(at);
            }
            BackfillMessage::Documents(body) => {
                context.store.backfill(info.local_id(), body).await?;
            }
            BackfillMessage::Progress { read, of } => {
                pace.record_read(read, of);
                lock(&context.builds).insert(info.local_id(), pace);
            }
            BackfillMessage::End => {
                return cut.ok_or_else(|| Error::internal("a backfill without a beginning"));
            }
        }
    }
    Err(Error::unavailable("the backfill stream ended before its end"))
}

/// Requests a snapshot of the source. It contains the entries of one index, as key-versions for
/// the slices on this node.
pub(super) async fn snapshot(
    context: &NodeContext,
    info: &IndexInfo,
) -> Result<ResultStream<BackfillMessage>> {
    let request = BackfillRequest {
        node: context.config.node.id,
        index: info.local_id(),
        revision: info.revision,
        vbuckets: None,
    };
    context.projector_of(info.bucket)?.backfill(request).await
}
