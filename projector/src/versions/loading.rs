//! Loads partitions of one version. The next chunk of rows is read while the one before it is stored.

use std::sync::Arc;

use proto::env::Bulk;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::{Files, VersionStage};
use proto::{Error, ErrorCode, Result};

use super::reader::{Chunk, VersionReader};
use crate::projector::Projector;
use crate::source::StoredDocument;
use crate::source::bucket::Bucket;
use crate::source::writer::Writer;

/// Why a version was not loaded.
pub(super) enum Trouble {
    /// Its files cannot be read, whoever tries.
    Files(Error),
    /// Something at this projector, or on the way to the coordinators: tried again.
    Here(Error),
    /// The version is not to be loaded any more.
    Ended,
}

type Loaded<T> = std::result::Result<T, Trouble>;

/// Loads partitions, none of which is whole, from the files of their version.
pub(super) async fn load(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    files: &Files,
    partitions: &VbucketSet,
) -> Loaded<()> {
    let cleared = partitions.clone();
    let clear = move |writer: &Writer, bucket: &Bucket| writer.clear_partitions(bucket, &cleared);
    projector.exclusively(Arc::clone(bucket), clear).await.map_err(Trouble::Here)?;
    let mut reader = open(projector, bucket, files, partitions).await.map_err(Trouble::Files)?;
    let mut waiting = Vec::new();
    loop {
        if !is_loading(projector, bucket) {
            return Err(Trouble::Ended);
        }
        let stored = store(projector, bucket, partitions, std::mem::take(&mut waiting));
        let (read, stored) = futures::future::join(next_chunk(projector, reader), stored).await;
        stored.map_err(Trouble::Here)?;
        let (back, chunk) = read.map_err(Trouble::Files)?;
        reader = back;
        waiting = chunk.documents;
        if chunk.is_last {
            break;
        }
    }
    store(projector, bucket, partitions, waiting).await.map_err(Trouble::Here)?;
    for partition in partitions.iter() {
        let (rows, me) = (reader.rows()[usize::from(partition.0)], projector.me());
        let complete = move |writer: &Writer, bucket: &Bucket| {
            writer.complete_partition(bucket, (partition, rows), me)
        };
        projector.exclusively(Arc::clone(bucket), complete).await.map_err(Trouble::Here)?;
    }
    Ok(())
}

async fn open(
    projector: &Projector,
    bucket: &Bucket,
    files: &Files,
    partitions: &VbucketSet,
) -> Result<VersionReader> {
    let Some(dir) = projector.config.files_dir.clone() else {
        let what = "this projector has no directory of files";
        return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
            "start all projectors with --files-dir, or set files_dir in their settings",
        ));
    };
    let (fs, files) = (Arc::clone(&projector.env.fs), files.clone());
    let wanted = (bucket.info.vbuckets, partitions.clone());
    let document_bytes_max = projector.config.document_bytes_max;
    projector
        .env
        .blocking(move || VersionReader::new(fs, &dir, &files, document_bytes_max, wanted))
        .await
}

async fn next_chunk(
    projector: &Projector,
    mut reader: VersionReader,
) -> Result<(VersionReader, Chunk)> {
    let read = move || reader.next_chunk().map(|chunk| (reader, chunk));
    projector.env.bulk(Bulk::Queued, read).await
}

async fn store(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
    documents: Vec<StoredDocument>,
) -> Result<()> {
    if documents.is_empty() {
        return Ok(());
    }
    let partitions = partitions.clone();
    let put =
        move |writer: &Writer, bucket: &Bucket| writer.put_rows(bucket, &partitions, documents);
    projector.exclusively(Arc::clone(bucket), put).await
}

/// True if the newest catalog still has the version, and it is loading.
fn is_loading(projector: &Projector, bucket: &Bucket) -> bool {
    let catalog = projector.catalog.borrow();
    let version = catalog.as_ref().and_then(|catalog| catalog.version(bucket.info.id));
    !bucket.is_removed()
        && version.is_some_and(|(_, _, version)| version.stage == VersionStage::Loading)
}
