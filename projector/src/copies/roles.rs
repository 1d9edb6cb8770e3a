//! This projector's part in each embedded bucket: a leader and a follower have tasks of their own, and a change of the part makes
//! the bucket anew from the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::env::Task;
use proto::model::assignment::VbucketSet;
use proto::model::copies::{Copies, CopyRole};
use proto::model::ids::BucketId;
use proto::{Error, Result};

use super::follow::follow;
use super::lead::lead;
use crate::projector::Projector;
use crate::source::bucket::Bucket;
use documents::ownership::Ownership;

/// The pause after a failure.
const RETRY: Duration = Duration::from_millis(200);

/// The task of a bucket. It ends with its owner.
struct RoleTask {
    bucket: Arc<Bucket>,
    _task: Task,
}

/// Keeps the parts as the configurations say. Runs until cancelled; safe to cancel at any await.
pub async fn keep_roles(projector: Arc<Projector>) -> &'static str {
    let mut changes = projector.roles.watch();
    let mut tasks: BTreeMap<BucketId, RoleTask> = BTreeMap::new();
    loop {
        changes.borrow_and_update();
        let ids = projector.bucket_ids();
        tasks.retain(|id, _| ids.contains(id));
        let mut has_failed = false;
        for id in ids {
            if let Err(error) = keep_role(&projector, id, &mut tasks).await {
                tracing::warn!(%id, %error, "a bucket could not change its part; retrying");
                has_failed = true;
            }
        }
        let again = async {
            match has_failed {
                true => tokio::time::sleep(RETRY).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return "the projector is gone" },
            () = again => {}
        }
    }
}

async fn keep_role(
    projector: &Arc<Projector>,
    id: BucketId,
    tasks: &mut BTreeMap<BucketId, RoleTask>,
) -> Result<()> {
    let (Some(bucket), Some(copies)) = (projector.find(id), projector.copies_of(id)) else {
        return Ok(());
    };
    if must_change(&bucket, &copies, copies.role(projector.me()) == CopyRole::Leader) {
        tasks.remove(&id);
        replace(projector, &bucket, &copies).await?;
    }
    let Some(bucket) = projector.find(id) else { return Ok(()) };
    let is_kept = tasks.get(&id).is_some_and(|task| Arc::ptr_eq(&task.bucket, &bucket));
    if !is_kept {
        let (own, at) = (Arc::clone(projector), Arc::clone(&bucket));
        let task = match bucket.is_leader() {
            true => projector.env.spawn_request("projector leads", lead(own, at)),
            false => projector.env.spawn_request("projector follows", follow(own, at)),
        };
        tasks.insert(id, RoleTask { bucket, _task: task });
    }
    Ok(())
}

/// True if the bucket was made for another part, or for an earlier term.
fn must_change(bucket: &Bucket, copies: &Copies, leads: bool) -> bool {
    let led = bucket.links.copies().map(|led| led.term);
    bucket.is_leader() != leads || led.is_some_and(|term| term < copies.term)
}

/// Makes a bucket anew for the part that this projector has now. Groups that wait for other copies are abandoned: the new leader
/// decides what becomes of them.
async fn replace(projector: &Arc<Projector>, old: &Arc<Bucket>, copies: &Copies) -> Result<()> {
    let why = old.led_elsewhere(copies.leader);
    old.end_leading(why.clone());
    let leads = copies.leader == projector.me();
    let (store, at, head) = (projector.store(), Arc::clone(old), projector.config.head_bytes_max);
    let made = projector.env.blocking(move || {
        let _gate = at.gate.abandon();
        let stored = store.buckets()?;
        let found = stored.into_iter().find(|(record, _)| record.info.id == at.info.id);
        let Some((mut record, ends)) = found else {
            return Err(Error::unavailable("the bucket is not stored (any more)"));
        };
        let owned = if leads { VbucketSet::all(at.info.vbuckets) } else { VbucketSet::default() };
        let ownership = Ownership { owned, ..Ownership::default() };
        if record.ownership != ownership {
            record.ownership = ownership;
            store.put_records(std::slice::from_ref(&record))?;
        }
        Ok(Bucket::new(record, &ends, head))
    });
    let new = made.await?;
    tracing::info!(bucket = %old.info.name, leads, term = copies.term, "a bucket has another part");
    if !leads {
        new.refuse(why.clone());
    }
    projector.replace(old, why, new);
    Ok(())
}
