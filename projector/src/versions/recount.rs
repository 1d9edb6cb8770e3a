//! Computation of the contents of partitions that are whole already, without another load.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use proto::env::Bulk;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::FilesRead;
use proto::model::ids::VbucketId;
use proto::{Error, ErrorCode};

use super::attempt::{Failure, LoadReport, look, open, same};
use super::contents::stored_contents;
use super::reader::RowCounter;
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// Computes the contents of whole partitions, which an earlier process has loaded, or an earlier
/// attempt of this process that then failed.
pub async fn recount(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
) -> std::result::Result<LoadReport, Failure> {
    let (writer, at, me) = (Arc::clone(&projector.writer), Arc::clone(bucket), projector.me());
    projector.env.bulk(Bulk::AtOnce, move || writer.own_whole(&at, me)).await?;
    let (durable, whole) = (bucket.durable(), bucket.whole());
    let wanted = partitions.iter().filter(|partition| whole.contains(*partition));
    let rows = wanted.map(|partition| (partition, durable.get(partition).seqno.0)).collect();
    let contents = stored_contents(projector, bucket, &rows).await?;
    let known = look(projector, bucket.info.id)?;
    let found = same(&known, LoadReport { contents, read: None })?;
    if rows.keys().all(|partition| known.content(*partition).is_some()) {
        return Ok(found);
    }
    let read = Some(read_again(projector, bucket, &rows).await?);
    Ok(LoadReport { read, ..found })
}

/// Reads all files again to summarize them, and checks that the numbers of rows equal those of the
/// whole partitions.
async fn read_again(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    rows: &BTreeMap<VbucketId, u64>,
) -> std::result::Result<FilesRead, Failure> {
    let id = bucket.info.id;
    let reader = open(projector, bucket, VbucketSet::default()).await?;
    let mut found = RowCounter::new(reader.files(), bucket.info.vbuckets);
    let mut batches = pin!(reader.batches(&projector.env));
    while let Some(batch) = batches.next().await {
        look(projector, id)?;
        let batch = batch.map_err(Failure::Files)?;
        found.add(&batch);
        projector.loads.step(id, batch.read().rows);
    }
    match rows.iter().find(|(partition, rows)| found.rows_of(**partition) != **rows) {
        None => Ok(found.read),
        Some((partition, rows)) => {
            let what = format!(
                "the files have changed: partition {partition} has {} rows, and {rows} were loaded",
                found.rows_of(*partition)
            );
            Err(Failure::Files(Error::new(ErrorCode::WrongState, what).with_hint(
                "nothing may change the files before the version is current; load it again",
            )))
        }
    }
}
