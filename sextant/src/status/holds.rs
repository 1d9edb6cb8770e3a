//! The holds: epochs that commits over several buckets hold back.

use proto::model::catalog::Catalog;
use proto::model::ids::BucketId;
use proto::rpc::api::{CoordinatorStatus, EpochHold};

use super::cluster_status::HoldStatus;
use super::slices::{report, silence};

/// Returns the holds, the longest first, except those of buckets that are not in the catalog.
pub(super) fn holds(catalog: &Catalog, reports: Option<&CoordinatorStatus>) -> Vec<HoldStatus> {
    let told = reports.into_iter().flat_map(|reports| &reports.holds);
    told.filter_map(|hold| status(catalog, reports, hold)).collect()
}

fn status(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
    hold: &EpochHold,
) -> Option<HoldStatus> {
    let (held, other) = (catalog.buckets.get(&hold.bucket)?, catalog.buckets.get(&hold.waits_for)?);
    let projectors = other.assignment.projectors();
    let mut notes = projectors.iter().filter_map(|node| silence(report(reports, *node)?));
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

/// Returns the milliseconds for which the epochs of a bucket have been held back; `None` without an
/// answer of the leader.
pub(super) fn held_ms(reports: Option<&CoordinatorStatus>, bucket: BucketId) -> Option<u64> {
    let status = reports.filter(|status| status.leader == Some(status.node))?;
    let of_bucket = status.holds.iter().filter(|hold| hold.bucket == bucket);
    Some(of_bucket.map(|hold| hold.held_ms).max().unwrap_or(0))
}
