//! The progress with which this projector loads versions of data sets. The heartbeats contain it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proto::Error;
use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::ids::BucketId;
use proto::rpc::api::{LOAD_TROUBLE_BYTES_MAX, LoadReport};

/// The data set versions that this projector is loading, or could not load.
#[derive(Default)]
pub(crate) struct LoadReports(Mutex<BTreeMap<BucketId, LoadReport>>);

impl LoadReports {
    /// Adds `steps` to the progress of a load.
    pub(crate) fn add_steps(&self, bucket: BucketId, steps: u64) {
        self.change(bucket, |report| report.steps += steps);
    }

    /// Records an error of a load. The report remains until the load is complete, so that the
    /// coordinators, which switch between versions, do not wait for a load that fails repeatedly.
    pub(crate) fn record_error(&self, bucket: BucketId, error: &Error) {
        let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        let text = format!("{}{hint}", error.message);
        let fits = |end: &usize| text.is_char_boundary(*end);
        let end = (0..=LOAD_TROUBLE_BYTES_MAX.min(text.len())).rev().find(fits).unwrap_or(0);
        self.change(bucket, |report| report.trouble = Some(text[..end].to_owned()));
    }

    /// Removes the report of a version that was loaded completely, or dropped.
    pub(crate) fn remove(&self, bucket: BucketId) {
        lock(&self.0).remove(&bucket);
    }

    /// Removes the reports of versions that are not in the catalog.
    pub(crate) fn retain_listed(&self, catalog: &Catalog) {
        lock(&self.0).retain(|bucket, _| catalog.buckets.contains_key(bucket));
    }

    /// Returns the reports of all versions.
    pub(crate) fn all(&self) -> Vec<LoadReport> {
        lock(&self.0).values().cloned().collect()
    }

    fn change(&self, bucket: BucketId, change: impl FnOnce(&mut LoadReport)) {
        let mut reports = lock(&self.0);
        change(reports.entry(bucket).or_insert(LoadReport { bucket, steps: 0, trouble: None }));
    }
}
