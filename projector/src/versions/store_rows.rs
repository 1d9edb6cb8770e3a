//! Stores the rows of a version.
//!
//! Batches of rows arrive in the order of the files. Some megabytes of them are sorted and
//! written together, as a *sheet*, while the next batches are read. Sheets are added to the
//! bucket in their order, so that the last row of an id is kept.
//!
//! An empty group in the log reserves the place of each sheet. Merges wait for the end of the
//! load.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesOrdered;
use proto::env::Bulk;
use proto::model::assignment::VbucketSet;

use super::attempt::{LoadFailure, current_version, open};
use super::contents::{Contents, DistinctContents};
use super::reader::RowCounter;
use super::sheet::{RowBlock, SheetContents};
use crate::projector::Projector;
use crate::source::AddSorted;
use crate::source::view::bucket::Bucket;

/// The approximate memory of a sheet in bytes. Larger sheets result in fewer fragments.
const SHEET_BYTES: usize = 48 << 20;
/// The maximum number of sheets that are being sorted and written.
const WRITTEN_AT_ONCE: usize = 2;

/// The summary of the rows of a version that were stored.
pub struct StoredRows {
    /// The counts of all rows that were read.
    pub rows: RowCounter,
    /// The contents (counts and digest) of the partitions. `None` if an id may be in several
    /// sheets, so that the contents must be computed from the stored documents.
    pub contents: Option<Contents>,
}

type StoreResult = Result<(AddSorted, SheetContents), LoadFailure>;

/// Reads the files of a version, and stores the rows of some partitions.
pub async fn store_rows(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
) -> Result<StoredRows, LoadFailure> {
    let stored = read_and_store(projector, bucket, partitions).await;
    projector.store().end_load(bucket.info.id);
    stored
}

async fn read_and_store(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
) -> Result<StoredRows, LoadFailure> {
    let id = bucket.info.id;
    let reader = open(projector, bucket, partitions.clone()).await?;
    let mut rows = RowCounter::new(reader.files(), bucket.info.vbuckets);
    let mut batches = pin!(reader.batches(&projector.env).fuse());
    let (mut sheet, mut distinct) = (RowBlock::default(), DistinctContents::default());
    let mut writing = FuturesOrdered::new();
    let mut adding = FuturesOrdered::new();
    loop {
        tokio::select! {
            biased;
            Some(added) = adding.next() => added?,
            Some(written) = writing.next(), if adding.is_empty() => {
                let (add, contents): (AddSorted, SheetContents) = written?;
                distinct.add(contents);
                adding.push_back(add_rows(projector, bucket, partitions, add));
            }
            batch = batches.next(), if !batches.is_done() && writing.len() < WRITTEN_AT_ONCE => {
                current_version(projector, id)?;
                if let Some(batch) = batch {
                    let batch = batch.map_err(LoadFailure::Files)?;
                    projector.loads.add_steps(id, batch.read().rows);
                    let before = rows.rows.clone();
                    rows.add(&batch);
                    sheet.add(batch, before);
                }
                let is_due = sheet.memory_bytes() >= SHEET_BYTES || batches.is_done();
                if is_due && !sheet.is_empty() {
                    let sheet = std::mem::take(&mut sheet);
                    writing.push_back(write_rows(projector, bucket, sheet));
                }
            }
            else => break,
        }
    }
    let contents = projector.env.bulk(Bulk::AtOnce, move || distinct.contents()).await;
    Ok(StoredRows { rows, contents })
}

/// Sorts the rows of a sheet, and writes them to a separate file.
async fn write_rows(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    sheet: RowBlock,
) -> StoreResult {
    let (store, id) = (projector.store(), bucket.info.id);
    let write = move || sheet.write(&*store, id);
    Ok(projector.env.bulk(Bulk::AtOnce, write).await?)
}

/// Adds the file of a written sheet to the bucket.
async fn add_rows(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
    add: AddSorted,
) -> Result<(), LoadFailure> {
    let (writer, at, of) = (Arc::clone(&projector.writer), Arc::clone(bucket), partitions.clone());
    let add = move || writer.add_rows(&at, &of, add);
    Ok(projector.env.bulk(Bulk::AtOnce, add).await?)
}
