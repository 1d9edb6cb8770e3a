//! The first entry of a bucket in the node manifest, see [`crate::node::checkpoints`].

use std::sync::Arc;

use proto::Result;
use proto::model::cut::EpochMark;

use crate::node::context::EngineContext;

/// Makes sure that the node manifest on disk names a newest epoch of a bucket; adds the epoch of
/// `mark` if not. Called before the first slices of the bucket become readable. `mark` must be the
/// newest applied epoch. The entry is correct even if fragments lack the epoch: no index of the
/// bucket is readable yet, and builds restart after a crash.
pub async fn ensure_bucket_mark(context: &Arc<EngineContext>, mark: &EpochMark) -> Result<()> {
    let mut order = context.order.lock().await;
    if order.named.contains(&mark.bucket) {
        return Ok(());
    }
    order.add_mark(mark);
    let manifest = order.node_manifest(context.files.next(), context.files.index_numbers());
    let task = Arc::clone(context);
    context.env.blocking(move || task.files.write_node_manifest(&manifest)).await?;
    order.named.insert(mark.bucket);
    Ok(())
}
