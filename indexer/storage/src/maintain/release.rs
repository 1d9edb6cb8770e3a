//! Lets go of the log as far as the fragments have what is in it.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Generation, IndexId};
use proto::plant::{self, Plant};

use crate::lock::lock;
use crate::log::lsn::Lsn;
use crate::node::context::Inner;

/// Lets go of the log as far as the fragments have what is in it.
pub async fn release_log(context: &Arc<Inner>) -> Result<()> {
    let inner = Arc::clone(context);
    context.env.blocking(move || settle_doubts(&inner)).await;
    let mut order = context.order.lock().await;
    context.checkpoint(&mut order, 1);
    let slots = context.state.slots();
    let unflushed = slots.iter().filter_map(|slot| slot.figures.needs_log_from());
    // Read before the indexes are asked, which `chain` does last: an epoch is in one or the other.
    let applying: Vec<Lsn> = lock(&context.state.buckets)
        .iter()
        .filter(|(bucket, _)| slots.iter().any(|slot| slot.info.bucket == **bucket))
        .filter_map(|(_, progress)| progress.applying)
        .collect();
    let doubts = context.files.doubts().into_iter().map(|(.., doubt)| doubt.lsn);
    let needed = unflushed.chain(applying).chain(doubts).min().unwrap_or(u64::MAX);
    let needed = if plant::is(Plant::LogReleasedEarly) { u64::MAX } else { needed };
    let passed = order.checkpoints.partition_point(|(lsn, _)| *lsn <= needed);
    let Some((lsn, marks)) = order.checkpoints.drain(..passed).next_back() else {
        return Ok(());
    };
    order.marks = marks.clone();
    order.checkpoints.push_front((lsn, marks));
    let manifest = order.node_manifest(context.files.next());
    let inner = Arc::clone(context);
    let release = move || {
        inner.files.write_node_manifest(&manifest)?;
        inner.log.release(lsn)
    };
    context.env.blocking(release).await
}

/// Makes the manifests on disk durable as memory has them where that is in doubt; what cannot be settled
/// now stays in doubt. Blocks.
pub fn settle_doubts(context: &Inner) {
    for (index, generation, doubt) in context.files.doubts() {
        let alone = context.state.alone(doubt.bucket);
        let _alone = lock(&alone);
        if let Err(error) = settle_doubt(context, index, generation) {
            tracing::warn!(%index, %error, "a manifest on disk is in doubt");
        }
    }
}

fn settle_doubt(context: &Inner, index: IndexId, generation: Generation) -> Result<()> {
    let put_back = |before| context.files.put_back_manifest(index, generation, before);
    let slot = context.state.get(index).filter(|slot| slot.info.generation == generation);
    let Some(slot) = slot else { return put_back(None) };
    let structure = lock(&slot.structure);
    let on_disk = !structure.dropped && structure.manifest.floor.is_some();
    put_back(on_disk.then_some(&structure.manifest))
}
