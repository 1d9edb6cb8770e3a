//! How far the epochs of a bucket have come, and waits for it.

use proto::Result;
use proto::model::ids::{BucketId, Epoch};
use proto::plant::{self, Plant};

use crate::counters::Counters;
use crate::lock::lock;
use crate::node::context::Inner;

/// How far the epochs of a bucket have come.
pub fn counters(context: &Inner, bucket: BucketId) -> Counters {
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
    // Asked after what is committed: that is in fragments by now or among what is not flushed.
    let slots = context.state.of_bucket(bucket);
    let oldest = slots.iter().filter_map(|slot| slot.figures.unflushed_epoch()).min();
    let stable = oldest.map_or(committed, |oldest| Epoch(oldest.0.saturating_sub(1)));
    // That an epoch was applied is known from its record alone, also where fragments have its rows.
    let durable = if plant::is(Plant::DurableEarly) { committed } else { durable };
    let durable = durable.min(committed);
    Counters { staged: staged.max(committed), committed, durable, stable: stable.min(durable) }
}

/// Waits until an epoch of a bucket would survive a crash.
pub async fn wait_durable(context: &Inner, bucket: BucketId, epoch: Epoch) -> Result<()> {
    loop {
        if counters(context, bucket).durable >= epoch {
            return Ok(());
        }
        let end = {
            let buckets = lock(&context.state.buckets);
            let ends = buckets.get(&bucket).map(|progress| &progress.ends);
            ends.and_then(|ends| ends.iter().find(|(other, _)| *other >= epoch).copied())
        };
        // It may have become durable, and been taken off, in between.
        if end.is_none() && counters(context, bucket).durable >= epoch {
            return Ok(());
        }
        match end {
            Some((_, lsn)) => context.log.wait_durable(lsn).await?,
            None => {
                let message = format!("epoch {epoch} of bucket {bucket} was not applied");
                return Err(proto::Error::unavailable(message));
            }
        }
    }
}
