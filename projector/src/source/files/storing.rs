//! The steps of a bucket's writer that store the partitions of a data set's version.
//!
//! The rows of a partition are stored as documents, each with its row number as its seqno. The
//! number of rows is known only when the last one is stored. So the documents are stored first.
//! Then one step stores the purge point and the branch, which makes the partition *whole*:
//! readable and complete. A process that finds documents of a partition without a branch removes
//! them, and loads the partition again.

use proto::model::assignment::VbucketSet;
use proto::model::data_set::branch_of_partition;
use proto::model::ids::{NodeId, Seqno, VbucketId};
use proto::{Error, Result};

use crate::source::AddSorted;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;

impl Writer {
    /// Removes the documents of partitions whose loading an earlier attempt has not completed.
    pub fn clear_partitions(&self, bucket: &Bucket, partitions: &VbucketSet) -> Result<()> {
        let _gate = bucket.gate.close();
        check_loading(bucket, partitions)?;
        // A version that was never begun has nothing to remove, and a removal costs each later merge a look.
        if self.store.snapshot(bucket.info.id)?.next_chunk(1)?.is_empty() {
            return Ok(());
        }
        let record = bucket.record();
        for partition in partitions.iter() {
            self.store.remove_vbucket(&record, partition)?;
            bucket.set_copied(record.branches.clone(), [(partition, Seqno(0))]);
        }
        Ok(())
    }

    /// Adds a file of rows to partitions that are being loaded.
    pub fn add_rows(&self, bucket: &Bucket, partitions: &VbucketSet, add: AddSorted) -> Result<()> {
        let _gate = bucket.gate.close();
        check_loading(bucket, partitions)?;
        add()
    }

    /// Marks a partition as whole after all of its rows were stored. Serves the partition if it
    /// is assigned to this projector.
    pub fn complete_partition(
        &self,
        bucket: &Bucket,
        (partition, rows): (VbucketId, u64),
        projector: NodeId,
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_loading(bucket, &[partition].into_iter().collect())?;
        let mut branches = bucket.branches();
        let branch = branch_of_partition(bucket.info.id, partition);
        branches[usize::from(partition.0)] = vec![(branch, 0)];
        let record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        match rows {
            // An empty partition has nothing that was purged.
            0 => self.store.put_records(&[record])?,
            _ => self.store.begin_purged(&record, partition, Seqno(rows))?,
        }
        bucket.set_copied(branches, [(partition, Seqno(rows))]);
        // This is done under the same gate, so a catalog that changes the owners is applied before or after all of it.
        self.apply_assignment(bucket, &bucket.assignment(), projector)
    }

    /// Serves the whole partitions that are assigned to this projector. An earlier attempt may
    /// have stored a partition and failed to serve it.
    pub fn serve_whole_partitions(&self, bucket: &Bucket, projector: NodeId) -> Result<()> {
        let _gate = bucket.gate.close();
        self.apply_assignment(bucket, &bucket.assignment(), projector)
    }
}

/// Returns an error if one of the partitions is whole already, because a whole partition never
/// changes.
fn check_loading(bucket: &Bucket, partitions: &VbucketSet) -> Result<()> {
    if bucket.is_removed() {
        return Err(bucket.removed_error());
    }
    let whole = bucket.whole_vbuckets();
    match partitions.iter().find(|partition| whole.contains(*partition)) {
        Some(whole) => Err(Error::internal(format!("partition {whole} is loaded already"))),
        None => Ok(()),
    }
}
