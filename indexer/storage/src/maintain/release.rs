//! Release of the log: removes the segments whose epochs are in fragments.

use std::sync::Arc;

use proto::Result;
use proto::lock::lock;
use proto::model::ids::{BucketId, LocalIndexId};
use proto::plant::{self, Plant};

use crate::log::lsn::Lsn;
use crate::node::context::EngineContext;

/// Writes the node manifest and releases the segments of the log whose epochs are in fragments in
/// all indexes.
pub async fn release_log(context: &Arc<EngineContext>) -> Result<()> {
    let task = Arc::clone(context);
    context.env.blocking(move || retry_manifests(&task)).await;
    let mut order = context.order.lock().await;
    context.checkpoint(&mut order, 1);
    let indexes = context.state.indexes_and_rebuilds();
    let unflushed = indexes.iter().filter_map(|index| index.stats.needs_log_from());
    // This is read before the indexes, which `chain` reads last. So an epoch that is being applied is in one or the
    // other.
    let unapplied_from: Vec<Lsn> = lock(&context.state.buckets)
        .iter()
        .filter(|(bucket, _)| indexes.iter().any(|index| index.info.bucket == **bucket))
        .filter_map(|(_, progress)| progress.unapplied_from)
        .collect();
    let doubts = context.files.uncertain_manifests().into_iter().map(|(_, doubt)| doubt.lsn);
    let needed = unflushed.chain(unapplied_from).chain(doubts).min().unwrap_or(u64::MAX);
    let needed = if plant::is(Plant::LogReleasedEarly) { u64::MAX } else { needed };
    let passed = order.checkpoints.partition_point(|(lsn, _)| *lsn <= needed);
    let Some((lsn, marks)) = order.checkpoints.drain(..passed).next_back() else {
        return Ok(());
    };
    order.marks = marks.clone();
    order.log_from = lsn;
    order.checkpoints.push_front((lsn, marks));
    let manifest = order.node_manifest(context.files.next(), context.files.index_numbers());
    let named: Vec<BucketId> = manifest.marks.iter().map(|mark| mark.bucket).collect();
    let task = Arc::clone(context);
    let release = move || {
        task.files.write_node_manifest(&manifest)?;
        task.log.release(lsn)
    };
    context.env.blocking(release).await?;
    order.named.extend(named);
    Ok(())
}

/// Writes the manifests again whose previous write failed, so that it is uncertain what is on
/// disk. Manifests that cannot be written are tried again at the next call. Blocks the thread.
pub fn retry_manifests(context: &EngineContext) {
    for (index, doubt) in context.files.uncertain_manifests() {
        let bucket_lock = context.state.bucket_lock(doubt.bucket);
        let _alone = lock(&bucket_lock);
        if let Err(error) = retry_manifest(context, index) {
            tracing::warn!(%index, %error, "a manifest on disk may still differ from memory");
        }
    }
}

/// Writes the manifest of one index again, so that the disk agrees with memory.
fn retry_manifest(context: &EngineContext, index: LocalIndexId) -> Result<()> {
    let put_back = |before| context.files.put_back_manifest(index, before);
    let Some(index) = context.state.get(index) else { return put_back(None) };
    let fragment_lists = lock(&index.fragment_lists);
    let on_disk = !fragment_lists.is_dropped && fragment_lists.manifest.floor.is_some();
    put_back(on_disk.then_some(&fragment_lists.manifest))
}
