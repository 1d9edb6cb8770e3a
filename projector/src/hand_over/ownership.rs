//! What the writer does when it changes which vbuckets of a bucket are kept
//! ([`proto::model::homes`] has the steps of a hand-over).
//!
//! What is kept follows from the catalog alone, and is durable with the bucket's record, so that a projector that
//! starts while no coordinator answers goes on with what it had. What is *released* is the projector's own word to the
//! target of a hand-over: it is durable before the word is given, and holds for as long as the catalog has the
//! hand-over.
//!
//! A vbucket that is being copied here (`copying.rs`) is in documents and log like any other, and nobody sees it
//! before it is kept: streams, snapshots and histories are of what is kept. Copies that were given up, and vbuckets
//! that went elsewhere, are removed when the catalog says so (`removing.rs`).
//!
//! All this runs between the writer's groups, alone.

use std::sync::Arc;

use proto::Result;
use proto::model::homes::{HandOver, Homes};
use proto::model::ids::{NodeId, Seqno, VbucketId};

use crate::source::bucket::Bucket;
use crate::source::ownership::Keeping;
use crate::source::record::is_part;
use crate::source::writer::Writer;

impl Writer {
    /// The catalog says where the vbuckets are: what is kept changes.
    pub fn keep(&self, bucket: &Bucket, homes: &Arc<Homes>, projector: NodeId) -> Result<()> {
        let _agree = self.agree();
        if bucket.is_removed() {
            return Ok(());
        }
        let before = bucket.keeping();
        let keeping = before.with_homes(homes, projector);
        self.empty_parts(bucket, &keeping)?;
        if keeping != *before {
            self.store.put_records(&[bucket.record_with(bucket.branches(), keeping.clone())])?;
        }
        bucket.keep(keeping, Arc::clone(homes));
        (self.moved)(bucket.info.id);
        Ok(())
    }

    /// What is to be kept is not shown in part. Of a vbucket whose home this is there is a part only where the disk
    /// is an older copy than the catalog: then nothing of it is here, and its producer pushes it again.
    fn empty_parts(&self, bucket: &Bucket, keeping: &Keeping) -> Result<()> {
        let (durable, branches) = (bucket.durable(), bucket.branches());
        let part = |vbucket: &VbucketId| {
            is_part(&branches[usize::from(vbucket.0)], durable.get(*vbucket).seqno)
        };
        let parts: Vec<_> = keeping.kept.iter().filter(part).map(|v| (v, Seqno(0))).collect();
        if parts.is_empty() {
            return Ok(());
        }
        tracing::warn!(bucket = %bucket.info.name, ?parts, "kept here, and here in part: emptied");
        self.store
            .rewind(&bucket.record_with(branches.clone(), (*bucket.keeping()).clone()), &parts)?;
        parts.iter().for_each(|part| bucket.copied(branches.clone(), *part));
        Ok(())
    }

    /// From now on a vbucket takes no mutations, for as long as the hand-over lasts.
    pub fn release(&self, bucket: &Bucket, handing: &HandOver) -> Result<()> {
        let _agree = self.agree();
        let mut keeping = Keeping::clone(&bucket.keeping());
        if bucket.homes().handing_of(handing.vbucket) != Some(handing)
            || !keeping.kept.contains(handing.vbucket)
        {
            return Err(bucket.not_home(handing.vbucket));
        }
        if keeping.released.contains(handing.vbucket) {
            return Ok(());
        }
        keeping.released.insert(handing.vbucket);
        self.store.put_records(&[bucket.record_with(bucket.branches(), keeping.clone())])?;
        bucket.keep(keeping, bucket.homes());
        Ok(())
    }
}
