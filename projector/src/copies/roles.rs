//! Runs the task of this projector's role in each embedded bucket. A leader and a follower have
//! different tasks, and a change of the role reopens the bucket from the store.
//!
//! A projector that has no role in a bucket any more removes its copy, but only after the leader
//! has confirmed that it has all mutations of that copy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::env::Task;
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::copies::{Copies, CopyRole};
use proto::model::ids::BucketId;
use proto::plant::{self, Plant};
use proto::rpc::api::COPY_GRACE_MS;
use proto::{Error, Result};
use tokio::time::Instant;

use super::follow::follow;
use super::lead::maintain_copies;
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use documents::ownership::Ownership;

/// The pause after a failure.
const RETRY: Duration = Duration::from_millis(200);

/// The running task of a bucket's role; the task ends when this value is dropped.
struct RoleTask {
    bucket: Arc<Bucket>,
    _task: Task,
}

/// Keeps this projector in the roles that the configurations assign to it: starts, replaces and
/// ends the tasks of the roles. Runs until cancelled; safe to cancel at any await.
pub async fn maintain_roles(projector: Arc<Projector>) -> &'static str {
    let mut changes = projector.roles.watch();
    let mut tasks: BTreeMap<BucketId, RoleTask> = BTreeMap::new();
    loop {
        changes.borrow_and_update();
        let ids = projector.bucket_ids();
        tasks.retain(|id, _| ids.contains(id));
        let mut look_at = None;
        for id in ids {
            let next = maintain_role(&projector, id, &mut tasks).await.unwrap_or_else(|error| {
                tracing::warn!(%id, %error, "a bucket could not change its part; retrying");
                Some(Instant::now() + RETRY)
            });
            look_at = look_at.into_iter().chain(next).min();
        }
        let again = async {
            match look_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return "the projector is gone" },
            () = again => {}
        }
    }
}

/// Keeps this projector in the role that one bucket's configuration assigns to it. Returns the
/// time of the next check, if one is needed.
async fn maintain_role(
    projector: &Arc<Projector>,
    id: BucketId,
    tasks: &mut BTreeMap<BucketId, RoleTask>,
) -> Result<Option<Instant>> {
    let (Some(bucket), Some(copies)) = (projector.find(id), projector.copies_of(id)) else {
        return Ok(None);
    };
    if can_remove_copy(projector, id) {
        tasks.remove(&id);
        remove_copy(projector, id).await?;
        return Ok(None);
    }
    let leads = copies.role(projector.node_id()) == CopyRole::Leader;
    // A bucket that has ended is never served again, for example one that was promoted and lost its leadership before it began to serve.
    if needs_reopening(&bucket, &copies, leads) || bucket.has_ended() {
        tasks.remove(&id);
        if let Some(at) = may_lead_from(projector, &bucket, &copies) {
            bucket.end_leading(bucket.led_elsewhere_error(copies.leader));
            return Ok(Some(at));
        }
        reopen_bucket(projector, &bucket, &copies).await?;
    }
    let Some(bucket) = projector.find(id) else { return Ok(None) };
    let is_kept = tasks.get(&id).is_some_and(|task| Arc::ptr_eq(&task.bucket, &bucket));
    if !is_kept {
        let (own, at) = (Arc::clone(projector), Arc::clone(&bucket));
        let parts = move || (Arc::clone(&own), Arc::clone(&at));
        let task = match bucket.is_leader() {
            true => projector.env.spawn_restarted("projector leads", move || {
                let (own, at) = parts();
                maintain_copies(own, at)
            }),
            false => projector.env.spawn_restarted("projector follows", move || {
                let (own, at) = parts();
                follow(own, at)
            }),
        };
        tasks.insert(id, RoleTask { bucket, _task: task });
    }
    Ok(None)
}

/// Returns the moment from which a newly promoted follower may lead a bucket; `None` if it may
/// lead now. Until that moment the old leader may answer reads under a lease that this projector
/// has granted. A leader that has handed leadership over has no such lease.
fn may_lead_from(projector: &Projector, bucket: &Bucket, copies: &Copies) -> Option<Instant> {
    let is_promoted =
        copies.leader == projector.node_id() && !bucket.is_leader() && !copies.is_given;
    let at = projector.roles.last_answer_at(bucket.info.id) + Duration::from_millis(COPY_GRACE_MS);
    (is_promoted && !plant::is(Plant::LeaseUnchecked) && Instant::now() < at).then_some(at)
}

/// Returns true if this projector's copy of a bucket can be removed: the projector has no role in
/// the bucket, enough other copies are complete, and the leader has all mutations of this copy. A
/// copy that was given up because it was silent is not removed, since it will join again and then
/// lacks few mutations.
fn can_remove_copy(projector: &Projector, id: BucketId) -> bool {
    projector.copies_of(id).is_some_and(|copies| {
        copies.role(projector.node_id()) == CopyRole::None
            && copies.in_sync.len() >= usize::from(copies.wanted)
            && projector.roles.compared_in(id) == Some(copies.term)
    })
}

/// Removes this projector's copy of a bucket, which is not needed any more.
async fn remove_copy(projector: &Arc<Projector>, id: BucketId) -> Result<()> {
    let _turn = projector.catalog_turn.lock().await;
    // A catalog may have made it a copy again.
    if !can_remove_copy(projector, id) {
        return Ok(());
    }
    let Some(gone) = projector.remove(id) else { return Ok(()) };
    tracing::info!(bucket = %gone.info.name, "removing a copy that is not needed any more");
    let (store, cas) = (projector.store(), projector.newest_catalog());
    let removed = projector.env.blocking(move || {
        let _gate = gone.gate.abandon();
        store.apply_catalog(cas, &[], &[id])
    });
    removed.await?;
    projector.damaged.record_files_removed(id);
    lock(&projector.stored).remove(&id);
    Ok(())
}

/// Returns true if the bucket object was opened for another role, or for an earlier term, so that
/// it must be replaced.
fn needs_reopening(bucket: &Bucket, copies: &Copies, leads: bool) -> bool {
    let led = bucket.links.copies().map(|led| led.term);
    bucket.is_leader() != leads || led.is_some_and(|term| term < copies.term)
}

/// Reopens a bucket for the role that this projector has now. Groups that still wait for other
/// copies are abandoned: the new leader's history decides whether their mutations remain.
async fn reopen_bucket(
    projector: &Arc<Projector>,
    old: &Arc<Bucket>,
    copies: &Copies,
) -> Result<()> {
    let why = old.led_elsewhere_error(copies.leader);
    old.end_leading(why.clone());
    let leads = copies.leader == projector.node_id();
    let (store, at, head) = (projector.store(), Arc::clone(old), projector.config.head_bytes_max);
    let writer = Arc::clone(&projector.writer);
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
            let stored = store.put_records(std::slice::from_ref(&record));
            stored.inspect_err(|_| writer.failed.notify_one())?;
        }
        Ok(Bucket::new(record, &ends, head))
    });
    let new = made.await?;
    tracing::info!(bucket = %old.info.name, leads, term = copies.term, "a bucket has another part");
    if !leads {
        new.set_refusal(why.clone());
    }
    projector.replace(old, why, new);
    Ok(())
}
