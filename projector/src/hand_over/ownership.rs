//! The steps of a bucket's writer that change which vbuckets this projector owns
//! ([`proto::model::assignment`] has the steps of a hand-over).
//!
//! The *owned* vbuckets are determined by the catalog alone. In a version of a data set, only
//! partitions that are complete on this projector are owned. The set is durable in the bucket's
//! record, so that a projector that starts without a coordinator continues with its last
//! ownership. A *released* vbucket accepts no more mutations: the projector has promised that to
//! the target of a hand-over. The release is durable before the promise is given, and is valid
//! while the catalog has the hand-over.
//!
//! A vbucket that is being received (`copying.rs`) is stored like any other, but not visible
//! before it is owned: streams, snapshots and histories cover only owned vbuckets. Abandoned
//! copies, and vbuckets that moved away, are removed when the catalog allows it (`removing.rs`).
//!
//! These steps run while no group of the bucket is in progress.

use std::sync::Arc;

use proto::Result;
use proto::model::assignment::{HandOver, VbucketAssignment};
use proto::model::ids::{NodeId, Seqno, VbucketId};

use crate::source::registry::source_of_kind;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use documents::ownership::Ownership;
use documents::record::is_partial;

impl Writer {
    /// Changes the owned vbuckets of a bucket to those that the catalog assigns to the projector.
    pub fn change_ownership(
        &self,
        bucket: &Bucket,
        assignment: &Arc<VbucketAssignment>,
        projector: NodeId,
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        self.apply_assignment(bucket, assignment, projector)
    }

    /// Changes the owned vbuckets like [`Self::change_ownership`], for a caller that has closed
    /// the gate.
    pub fn apply_assignment(
        &self,
        bucket: &Bucket,
        assignment: &Arc<VbucketAssignment>,
        projector: NodeId,
    ) -> Result<()> {
        if bucket.is_removed() {
            return Ok(());
        }
        let before = bucket.ownership();
        let mut ownership = before.with_assignment(assignment, projector);
        let (source, branches) = (source_of_kind(bucket.info.source), bucket.branches());
        let can_serve = |v: &VbucketId| source.can_serve(&branches[usize::from(v.0)]);
        ownership.owned = ownership.owned.iter().filter(can_serve).collect();
        self.empty_partial_vbuckets(bucket, &ownership)?;
        if ownership != *before {
            self.store.put_records(&[bucket.record_with(bucket.branches(), ownership.clone())])?;
        }
        bucket.set_ownership(ownership, Arc::clone(assignment));
        (self.on_change)(bucket.info.id);
        Ok(())
    }

    /// Removes the data of partial vbuckets that become owned, before they are visible. An owned
    /// vbucket is partial only if the disk is older than the catalog. Its producer then pushes
    /// the data again.
    fn empty_partial_vbuckets(&self, bucket: &Bucket, ownership: &Ownership) -> Result<()> {
        let (durable, branches) = (bucket.durable(), bucket.branches());
        let part = |vbucket: &VbucketId| {
            is_partial(&branches[usize::from(vbucket.0)], durable.get(*vbucket).seqno)
        };
        let parts: Vec<_> = ownership.owned.iter().filter(part).map(|v| (v, Seqno(0))).collect();
        if parts.is_empty() {
            return Ok(());
        }
        tracing::warn!(bucket = %bucket.info.name, ?parts, "emptied partial vbuckets that this projector owns");
        self.store
            .rewind(&bucket.record_with(branches.clone(), (*bucket.ownership()).clone()), &parts)?;
        bucket.set_copied(branches, parts);
        Ok(())
    }

    /// Makes a vbucket refuse mutations until the end of its hand-over.
    pub fn release_vbucket(&self, bucket: &Bucket, transfer: &HandOver) -> Result<()> {
        let _gate = bucket.gate.close();
        if bucket.is_removed() {
            return Err(bucket.removed_error());
        }
        let mut ownership = Ownership::clone(&bucket.ownership());
        if bucket.assignment().transfer_of(transfer.vbucket) != Some(transfer)
            || !ownership.owned.contains(transfer.vbucket)
        {
            return Err(bucket.not_owned(transfer.vbucket));
        }
        if ownership.released.contains(transfer.vbucket) {
            return Ok(());
        }
        ownership.released.insert(transfer.vbucket);
        self.store.put_records(&[bucket.record_with(bucket.branches(), ownership.clone())])?;
        bucket.set_ownership(ownership, bucket.assignment());
        Ok(())
    }
}
