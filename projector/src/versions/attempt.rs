//! Code shared by loads and recounts of partitions: results, failures, and the opening of the
//! files.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Error;
use proto::env::Bulk;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::{FilesRead, PartitionContent};
use proto::model::ids::{BucketId, VbucketId};

use super::plan::{CatalogVersion, known};
use super::reader::VersionReader;
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// The report of a projector about its whole partitions.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// The contents of the whole partitions.
    pub contents: BTreeMap<VbucketId, PartitionContent>,
    /// The summary of the files that were read; `None` if no file had to be read.
    pub read: Option<FilesRead>,
}

/// The reasons why partitions were not loaded.
#[derive(Debug)]
pub enum Failure {
    /// The version was dropped, or must not be loaded any more.
    Gone,
    /// The files are invalid, so another read does not help.
    Files(Error),
    /// Partitions have other contents on this projector than on others.
    Differs(LoadReport),
    /// This projector has failed, and may retry.
    Here(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// Returns the present record of a version in the catalog.
pub fn look(
    projector: &Projector,
    bucket: BucketId,
) -> std::result::Result<CatalogVersion, Failure> {
    let catalog = projector.catalog.borrow().clone();
    catalog.and_then(|catalog| known(&catalog, bucket)).ok_or(Failure::Gone)
}

/// Opens the files of a version, for the rows of some partitions.
pub(super) async fn open(
    projector: &Arc<Projector>,
    bucket: &Bucket,
    partitions: VbucketSet,
) -> std::result::Result<VersionReader, Failure> {
    let files = look(projector, bucket.info.id)?.files;
    let (fs, dir) = (Arc::clone(&projector.env.fs), projector.config.files_dir.clone());
    let (of, bytes_max) = ((partitions, bucket.info.vbuckets), projector.config.document_bytes_max);
    let open = move || VersionReader::new(fs, dir.as_deref(), &files, of, bytes_max);
    projector.env.bulk(Bulk::Queued, open).await.map_err(Failure::Files)
}

/// Returns `found` if the contents of its partitions equal those that other projectors have
/// reported, otherwise `Differs`.
pub(super) fn same(
    known: &CatalogVersion,
    found: LoadReport,
) -> std::result::Result<LoadReport, Failure> {
    let differs = |(partition, content): (&VbucketId, &PartitionContent)| {
        known.content(*partition).is_some_and(|other| other != *content)
    };
    match found.contents.iter().any(differs) {
        true => Err(Failure::Differs(found)),
        false => Ok(found),
    }
}
