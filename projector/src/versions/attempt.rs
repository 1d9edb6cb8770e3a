//! Code that the loading and the recounting of partitions share: their results, their failures,
//! and the opening of the files.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Error;
use proto::env::Bulk;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::{FilesRead, PartitionContent};
use proto::model::ids::{BucketId, VbucketId};

use super::plan::{CatalogVersion, version_to_load};
use super::reader::VersionReader;
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// The report of a projector about the partitions that it has completely stored.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// For each completely stored partition, its numbers of rows and documents, their bytes, and
    /// a digest.
    pub contents: BTreeMap<VbucketId, PartitionContent>,
    /// The summary of the files that were read; `None` if no file had to be read.
    pub read: Option<FilesRead>,
}

/// The reasons why partitions were not loaded.
#[derive(Debug)]
pub enum LoadFailure {
    /// The version was dropped, or must not be loaded any more, for example because it has
    /// failed.
    Gone,
    /// The files of the version are invalid, so reading them again does not help.
    Files(Error),
    /// Partitions differ from those that other projectors have loaded. Contains this projector's
    /// report.
    Differs(LoadReport),
    /// An error of this projector, which may try again.
    Here(Error),
}

impl From<Error> for LoadFailure {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// Returns the catalog's present record of a version, or the failure if the version must not be
/// loaded any more.
pub fn current_version(
    projector: &Projector,
    bucket: BucketId,
) -> std::result::Result<CatalogVersion, LoadFailure> {
    let catalog = projector.catalog.borrow().clone();
    catalog.and_then(|catalog| version_to_load(&catalog, bucket)).ok_or(LoadFailure::Gone)
}

/// Opens the files of a version, to read the rows of some of its partitions.
pub(super) async fn open(
    projector: &Arc<Projector>,
    bucket: &Bucket,
    partitions: VbucketSet,
) -> std::result::Result<VersionReader, LoadFailure> {
    let files = current_version(projector, bucket.info.id)?.files;
    let (fs, dir) = (Arc::clone(&projector.env.fs), projector.config.files_dir.clone());
    let (of, bytes_max) = ((partitions, bucket.info.vbuckets), projector.config.document_bytes_max);
    let open = move || VersionReader::new(fs, dir.as_deref(), &files, of, bytes_max);
    projector.env.bulk(Bulk::Queued, open).await.map_err(LoadFailure::Files)
}

/// Returns `found` if its partitions equal those that other projectors have reported; otherwise
/// the failure `Differs`.
pub(super) fn check_same_contents(
    known: &CatalogVersion,
    found: LoadReport,
) -> std::result::Result<LoadReport, LoadFailure> {
    let differs = |(partition, content): (&VbucketId, &PartitionContent)| {
        known.content(*partition).is_some_and(|other| other != *content)
    };
    match found.contents.iter().any(differs) {
        true => Err(LoadFailure::Differs(found)),
        false => Ok(found),
    }
}
