//! A build's snapshot of the source, fetched into the store off the follower's loop.

use std::sync::Arc;

use futures::StreamExt;
use proto::env::Task;
use proto::model::cut::Cut;
use proto::model::ids::IndexId;
use proto::model::index::IndexInfo;
use proto::rpc::api::ResultStream;
use proto::rpc::mutation::{BackfillMessage, BackfillRequest};
use proto::{Error, Result};

use crate::context::NodeContext;

/// An index that is being built.
pub(super) struct Build {
    /// Tells it from earlier ones of the index.
    pub(super) number: u64,
    pub info: Arc<IndexInfo>,
    /// From here on the stream brings what is new, without a gap.
    pub joined: Cut,
    /// The snapshot's cut, once all its documents are in the store.
    pub snapshot: Option<Cut>,
    pub(super) _task: Task,
}

/// All documents of a build's snapshot are in the store.
pub(super) struct Built {
    pub(super) index: IndexId,
    pub(super) number: u64,
    pub(super) cut: Cut,
}

/// Fetches a backfill snapshot into the store, again from the beginning after an error.
pub(super) async fn build(
    context: NodeContext,
    info: Arc<IndexInfo>,
    number: u64,
    built: async_channel::Sender<Built>,
) {
    loop {
        match backfill(&context, &info).await {
            Ok(cut) => {
                let done = Built { index: info.id, number, cut };
                // The follower is gone only when this task is cancelled too.
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

async fn backfill(context: &NodeContext, info: &IndexInfo) -> Result<Cut> {
    let mut stream = snapshot(context, info).await?;
    let mut cut = None;
    while let Some(message) = stream.next().await {
        match message? {
            BackfillMessage::Begin { cut: at } => {
                context.store.begin_backfill(info.id, info.generation).await?;
                cut = Some(at);
            }
            BackfillMessage::Documents(body) => {
                context.store.backfill(info.id, info.generation, body).await?;
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
    context: &NodeContext,
    info: &IndexInfo,
) -> Result<ResultStream<BackfillMessage>> {
    let request = BackfillRequest {
        node: context.config.node.id,
        index: info.id,
        generation: info.generation,
        revision: info.revision,
        vbuckets: None,
    };
    context.source(info.bucket)?.backfill(request).await
}
