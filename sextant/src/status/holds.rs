//! The holds in the status: buckets whose epochs wait for a commit over several buckets.

use proto::model::catalog::Catalog;
use proto::model::ids::BucketId;
use proto::rpc::api::{CoordinatorStatus, EpochWait};

use super::cluster_status::HoldStatus;
use super::slices::{report, silence_note};

/// Returns the holds of the buckets in the catalog, the longest first.
pub(super) fn holds(catalog: &Catalog, reports: Option<&CoordinatorStatus>) -> Vec<HoldStatus> {
    let told = reports.into_iter().flat_map(|reports| &reports.holds);
    told.filter_map(|hold| status(catalog, reports, hold)).collect()
}

/// Returns the status of a hold; `None` if a bucket of it is not in the catalog.
fn status(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
    hold: &EpochWait,
) -> Option<HoldStatus> {
    let (held, other) = (catalog.buckets.get(&hold.bucket)?, catalog.buckets.get(&hold.waits_for)?);
    let projectors = other.assignment.projectors();
    let mut notes = projectors.iter().filter_map(|node| silence_note(report(reports, *node)?));
    let rolled_back = || {
        let rollback = other.rollback.as_ref()?;
        Some(format!("bucket {} is being rolled back ({})", other.name, rollback.stage.name()))
    };
    Some(HoldStatus {
        bucket: held.name.clone(),
        held_ms: hold.held_ms,
        transaction: hold.transaction,
        waits_for: other.name.clone(),
        note: notes.next().or_else(rolled_back),
        projectors,
    })
}

/// Returns the milliseconds for which the epochs of a bucket have waited for a commit. Returns
/// `None` without an answer of the leader.
pub(super) fn held_ms(reports: Option<&CoordinatorStatus>, bucket: BucketId) -> Option<u64> {
    let status = reports.filter(|status| status.leader == Some(status.node))?;
    let of_bucket = status.holds.iter().filter(|hold| hold.bucket == bucket);
    Some(of_bucket.map(|hold| hold.held_ms).max().unwrap_or(0))
}
