//! The durability of a bucket's epochs: progress counters, and waiting until an epoch survives a
//! crash.

use proto::Result;
use proto::lock::lock;
use proto::model::ids::{BucketId, Epoch};
use proto::plant::{self, Plant};

use crate::counters::Counters;
use crate::node::context::EngineContext;

/// Returns the progress counters of a bucket.
pub fn counters(context: &EngineContext, bucket: BucketId) -> Counters {
    let durable_lsn = context.log.durable().borrow().lsn;
    let (staged, committed, durable) = {
        let mut buckets = lock(&context.state.buckets);
        let Some(progress) = buckets.get_mut(&bucket) else { return Counters::default() };
        while let Some((epoch, _)) = progress.ends.front().filter(|(_, lsn)| *lsn <= durable_lsn) {
            progress.durable = *epoch;
            progress.ends.pop_front();
        }
        let committed = progress.applied.as_ref().map_or(Epoch(0), |mark| mark.epoch);
        (progress.staged, committed, progress.durable)
    };
    // The order matters: what was committed by now is either in fragments or among the unflushed
    // epochs.
    let indexes = context.state.indexes_of_bucket(bucket);
    let oldest = indexes.iter().filter_map(|index| index.stats.unflushed_epoch()).min();
    let stable = oldest.map_or(committed, |oldest| Epoch(oldest.0.saturating_sub(1)));
    // Only the log record of an epoch proves that it was applied, even if fragments have its rows.
    let durable = if plant::is(Plant::DurableEarly) { committed } else { durable };
    let durable = durable.min(committed);
    let staged = staged.max(committed);
    let counters = Counters { staged, committed, durable, stable: stable.min(durable) };
    debug_assert!(counters.are_in_order(), "{counters:?}");
    counters
}

/// Waits until an epoch of a bucket survives a crash.
pub async fn wait_durable(context: &EngineContext, bucket: BucketId, epoch: Epoch) -> Result<()> {
    loop {
        if counters(context, bucket).durable >= epoch {
            return Ok(());
        }
        let end = {
            let buckets = lock(&context.state.buckets);
            let ends = buckets.get(&bucket).map(|progress| &progress.ends);
            ends.and_then(|ends| ends.iter().find(|(other, _)| *other >= epoch).copied())
        };
        // The epoch may have become durable, and its entry removed, in between.
        if end.is_none() && counters(context, bucket).durable >= epoch {
            return Ok(());
        }
        match end {
            Some((_, lsn)) => context.log.wait_durable(lsn).await?,
            None => {
                let message = format!(
                    "epoch {epoch} of bucket {bucket} was not applied, so it cannot become durable"
                );
                return Err(proto::Error::unavailable(message));
            }
        }
    }
}
