//! Healing of damaged buckets. A damaged bucket is recreated, empty, if another copy leads it and
//! this projector may join. The new copy is then filled like a copy on a new disk. The damaged
//! files are removed when the new copy is in sync, or when this projector's copy is not needed
//! any more. If the damaged copy had data that its leader lacks, the files are kept for an
//! operator. The comparison with the leader uses the positions in the manifest of the damaged
//! files. These are some seconds old, or older if the store was busy.
//!
//! A catalog alone is not sufficient to give up data: it may be old, and an earlier process of
//! this projector may have been the last copy in sync in the meantime. So three conditions must
//! hold:
//!
//! 1. The coordinators answer, after all earlier commands, that another copy leads in some term,
//!    and that this copy is joining.
//! 2. That leader answers in this term. A leader answers only after the coordinators have
//!    compared its copy with the last epoch ([`super::serve`]).
//! 3. The copy is still joining when the bucket is recreated; no bucket is created or removed
//!    meanwhile.
//!
//! A damaged copy that is registered as in sync waits until its leader gives it up, which takes a
//! second. A leader whose bucket is damaged does not answer, so a copy in sync replaces it. If
//! there is no other copy in sync, the data is never given up: calls for the bucket are refused
//! until an operator acts.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use documents::document_store::DamagedFiles;
use documents::ownership::Ownership;
use proto::Result;
use proto::lock::lock;
use proto::model::copies::{Copies, CopiesChange, CopyRole};
use proto::model::cut::{Cut, Position};
use proto::model::history::{Branches, SourceHistory};
use proto::model::ids::{BucketId, VbucketId, Vbuuid};
use proto::rpc::api::{CopyAnswer, CopyRequestKind};

use super::follower::{LeaderCalls, unexpected_answer_error};
use super::lead::request_change;
use crate::projector::Projector;
use crate::source::BucketRecord;
use crate::source::view::bucket::Bucket;

/// The pause between two checks whether a damaged bucket can be healed.
const LOOK: Duration = Duration::from_millis(500);
/// A revision number that no configuration has. A change that is requested for it is always
/// refused, and the refusal contains the configuration after all earlier commands.
const NO_REVISION: u64 = 0;

/// Heals damaged buckets that have other copies. Runs until cancelled; an interrupted healing
/// continues at the next start of the process.
pub async fn heal_damaged(projector: Arc<Projector>) -> Infallible {
    loop {
        let (damaged, replaced) = (projector.damaged.ids(), projector.damaged.recreated());
        if damaged.is_empty() && replaced.is_empty() {
            // Damage is found at the start alone.
            std::future::pending::<()>().await;
        }
        for id in damaged {
            match heal_bucket(&projector, id).await {
                Ok(()) => {}
                Err(error) if error.is_retry() => {
                    tracing::debug!(%id, %error, "a damaged bucket cannot be healed yet");
                }
                Err(error) => {
                    tracing::warn!(%id, %error, "healing a damaged bucket failed; retrying")
                }
            }
        }
        for id in replaced {
            if let Err(error) = remove_damaged_files(&projector, id).await {
                tracing::warn!(%id, %error, "the damaged files of a bucket stay for now");
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The remedies for a damaged copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// The bucket is recreated, empty, and joins the set of copies again.
    Anew,
    /// The copy is removed, because enough other copies are complete.
    Removed,
}

/// Returns the remedy that a configuration allows for a damaged bucket; `None` if the bucket must
/// wait.
fn remedy_for_bucket(projector: &Projector, id: BucketId, copies: &Copies) -> Option<Remedy> {
    if projector.is_foreign(id) {
        return None;
    }
    match copies.role(projector.node_id()) {
        CopyRole::Joining => Some(Remedy::Anew),
        CopyRole::None if copies.in_sync.len() >= usize::from(copies.wanted) => {
            Some(Remedy::Removed)
        }
        // A leader, and a copy in sync by name, wait until another copy leads without them.
        _ => None,
    }
}

/// Heals one damaged bucket, if its leader confirms that no data is lost by that.
async fn heal_bucket(projector: &Arc<Projector>, id: BucketId) -> Result<()> {
    let known = projector.copies_of(id);
    if known.is_none_or(|known| remedy_for_bucket(projector, id, &known).is_none()) {
        return Ok(());
    }
    let question = (NO_REVISION, CopiesChange::Shrink(projector.node_id()));
    let Some(copies) = request_change(projector, id, question).await? else { return Ok(()) };
    let Some(remedy) = remedy_for_bucket(projector, id, &copies) else { return Ok(()) };
    let leader = LeaderCalls::new(projector, id, &copies)?;
    let CopyAnswer::Compared(history) = leader.send_request(CopyRequestKind::Compare).await? else {
        return Err(unexpected_answer_error());
    };
    match remedy {
        Remedy::Anew => recreate_empty(projector, id, &history).await,
        Remedy::Removed => remove_damaged_copy(projector, id, &history).await,
    }
}

/// Returns true if the configuration still allows the remedy. The caller must have locked the
/// order of catalogs.
fn is_remedy_still_valid(projector: &Projector, id: BucketId, wanted: Remedy) -> bool {
    let is_damaged = projector.damaged.get(id).is_some();
    let now = projector.copies_of(id).and_then(|copies| remedy_for_bucket(projector, id, &copies));
    is_damaged && now == Some(wanted)
}

/// Recreates a damaged bucket, empty.
async fn recreate_empty(
    projector: &Arc<Projector>,
    id: BucketId,
    leader: &SourceHistory,
) -> Result<()> {
    let _turn = projector.catalog_turn.lock().await;
    let catalog = projector.catalog.borrow().clone();
    let info = catalog.and_then(|catalog| catalog.buckets.get(&id).cloned());
    let Some(info) = info.filter(|_| is_remedy_still_valid(projector, id, Remedy::Anew)) else {
        return Ok(());
    };
    let Some(damaged) = projector.damaged.get(id) else { return Ok(()) };
    let files = match leader.has(&complete_positions(damaged.positions.clone())) {
        true => DamagedFiles::UntilComplete,
        false => {
            tracing::warn!(%id, had = ?damaged.positions, has = ?leader.durable, "a damaged copy had something that its leader lacks: its files are kept until an operator removes them");
            DamagedFiles::Kept
        }
    };
    let record = BucketRecord {
        branches: vec![Branches::new(); usize::from(info.vbuckets)],
        info: (*info).clone(),
        ownership: Ownership::default(),
        given_up: BTreeMap::new(),
        commits: Default::default(),
    };
    tracing::warn!(bucket = %info.name, "a damaged copy is made anew: another copy has everything");
    let (store, made) = (projector.store(), record.clone());
    projector.env.blocking(move || store.recreate_empty(&made, files)).await?;
    projector.roles.forget_compared(id);
    let ends = vec![Default::default(); usize::from(info.vbuckets)];
    projector.add(Bucket::new(record, &ends, projector.config.head_bytes_max));
    // Order matters: the timestamps that come again find the bucket.
    projector.damaged.record_recreated(id, files);
    Ok(())
}

/// Returns the positions of a copy in its complete vbuckets only. A partial vbucket has no
/// branch, and its data is a subset of the leader's.
fn complete_positions(mut positions: Cut) -> Cut {
    let parts = positions.iter().filter(|(_, at)| at.vbuuid == Vbuuid::default());
    let parts: Vec<VbucketId> = parts.map(|(vbucket, _)| vbucket).collect();
    parts.into_iter().for_each(|vbucket| positions.set(vbucket, Position::default()));
    positions
}

/// Removes a damaged copy that this cluster does not need any more.
async fn remove_damaged_copy(
    projector: &Arc<Projector>,
    id: BucketId,
    leader: &SourceHistory,
) -> Result<()> {
    let _turn = projector.catalog_turn.lock().await;
    let Some(damaged) = projector.damaged.get(id) else { return Ok(()) };
    if !leader.has(&complete_positions(damaged.positions.clone())) {
        // Writes that were never acknowledged are such a thing, but a restored coordinator could be the reason as well.
        if projector.damaged.record_files_kept(id) {
            tracing::warn!(%id, had = ?damaged.positions, has = ?leader.durable, "a damaged copy is not needed any more, but it had something that its leader lacks: its files are kept until the bucket is dropped");
        }
        return Ok(());
    }
    if !is_remedy_still_valid(projector, id, Remedy::Removed) {
        return Ok(());
    }
    tracing::warn!(%id, "a damaged copy is removed: it is not needed any more");
    let (store, cas) = (projector.store(), projector.newest_catalog());
    projector.env.blocking(move || store.apply_catalog(cas, &[], &[id])).await?;
    projector.damaged.record_files_removed(id);
    lock(&projector.stored).remove(&id);
    Ok(())
}

/// Removes the damaged files of a bucket whose new copy is in sync.
async fn remove_damaged_files(projector: &Arc<Projector>, id: BucketId) -> Result<()> {
    let Some(copies) = projector.copies_of(id) else { return Ok(()) };
    let is_complete = match copies.role(projector.node_id()) {
        CopyRole::Leader => projector.find(id).is_some_and(|bucket| bucket.is_led()),
        CopyRole::InSync => projector.roles.compared_in(id) == Some(copies.term),
        CopyRole::Joining | CopyRole::None => false,
    };
    if !is_complete {
        return Ok(());
    }
    let store = projector.store();
    projector.env.blocking(move || store.remove_replaced(id)).await?;
    tracing::info!(%id, "a damaged copy is healed, and its damaged files are removed");
    projector.damaged.record_files_removed(id);
    Ok(())
}
