//! Computes the contents (counts and digest) of partitions that are completely stored already,
//! without loading them again.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use proto::env::Bulk;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::FilesRead;
use proto::model::ids::VbucketId;
use proto::{Error, ErrorCode};

use super::attempt::{LoadFailure, LoadReport, check_same_contents, current_version, open};
use super::contents::stored_contents;
use super::reader::RowCounter;
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// Computes the contents of completely stored partitions. An earlier process has loaded them, or
/// an earlier attempt of this process that failed after storing them.
pub async fn recount(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
) -> std::result::Result<LoadReport, LoadFailure> {
    let (writer, at, me) = (Arc::clone(&projector.writer), Arc::clone(bucket), projector.node_id());
    projector.env.bulk(Bulk::AtOnce, move || writer.serve_whole_partitions(&at, me)).await?;
    let (durable, whole) = (bucket.durable(), bucket.whole_vbuckets());
    let wanted = partitions.iter().filter(|partition| whole.contains(*partition));
    let rows = wanted.map(|partition| (partition, durable.get(partition).seqno.0)).collect();
    let contents = stored_contents(projector, bucket, &rows).await?;
    let known = current_version(projector, bucket.info.id)?;
    let found = check_same_contents(&known, LoadReport { contents, read: None })?;
    if rows.keys().all(|partition| known.content(*partition).is_some()) {
        return Ok(found);
    }
    let read = Some(read_again(projector, bucket, &rows).await?);
    Ok(LoadReport { read, ..found })
}

/// Reads all files of a version again to summarize them. Checks that their numbers of rows equal
/// those of the stored partitions.
async fn read_again(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    rows: &BTreeMap<VbucketId, u64>,
) -> std::result::Result<FilesRead, LoadFailure> {
    let id = bucket.info.id;
    let reader = open(projector, bucket, VbucketSet::default()).await?;
    let mut found = RowCounter::new(reader.files(), bucket.info.vbuckets);
    let mut batches = pin!(reader.batches(&projector.env));
    while let Some(batch) = batches.next().await {
        current_version(projector, id)?;
        let batch = batch.map_err(LoadFailure::Files)?;
        found.add(&batch);
        projector.loads.add_steps(id, batch.read().rows);
    }
    match rows.iter().find(|(partition, rows)| found.rows_of(**partition) != **rows) {
        None => Ok(found.read),
        Some((partition, rows)) => {
            let what = format!(
                "the files have changed: partition {partition} has {} rows, and {rows} were loaded",
                found.rows_of(*partition)
            );
            Err(LoadFailure::Files(Error::new(ErrorCode::WrongState, what).with_hint(
                "nothing may change the files before the version is current; load it again",
            )))
        }
    }
}
