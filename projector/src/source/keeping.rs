//! Which vbuckets of a bucket a projector keeps, and what the writer does when that changes
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

use proto::model::history::Branches;
use proto::model::homes::{HandOver, Homes, VbucketSet};
use proto::model::ids::{NodeId, Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use super::bucket::Bucket;
use super::writer::Writer;
use super::{BucketRecord, is_part};

/// What a projector keeps of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    /// The vbuckets whose home it is.
    pub kept: VbucketSet,
    /// Of these, those that take no more mutations: they are being handed over.
    pub released: VbucketSet,
}

impl Keeping {
    /// What is kept when the homes are these.
    pub fn with_homes(&self, homes: &Homes, projector: NodeId) -> Self {
        let kept = homes.kept_by(projector);
        let is_pending =
            |vbucket: &VbucketId| kept.contains(*vbucket) && homes.handing_of(*vbucket).is_some();
        let released = self.released.iter().filter(is_pending).collect();
        Self { kept, released }
    }

    /// Does a vbucket take mutations?
    pub fn takes(&self, vbucket: VbucketId) -> bool {
        self.kept.contains(vbucket) && !self.released.contains(vbucket)
    }
}

/// The error for a vbucket that is kept elsewhere, or soon will be.
pub fn not_home(bucket: &Bucket, vbucket: VbucketId) -> Error {
    let what = format!("vbucket {vbucket} of bucket {} is not kept here", bucket.info.name);
    Error::new(ErrorCode::NotHome, what)
        .with_hint("ask again: another projector keeps it, or soon will")
}

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
            self.store.put_records(&[record(bucket, bucket.branches(), keeping.clone())])?;
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
            .rewind(&record(bucket, branches.clone(), (*bucket.keeping()).clone()), &parts)?;
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
            return Err(not_home(bucket, handing.vbucket));
        }
        if keeping.released.contains(handing.vbucket) {
            return Ok(());
        }
        keeping.released.insert(handing.vbucket);
        self.store.put_records(&[record(bucket, bucket.branches(), keeping.clone())])?;
        bucket.keep(keeping, bucket.homes());
        Ok(())
    }
}

/// The bucket's record with these branches.
pub(super) fn record(bucket: &Bucket, branches: Vec<Branches>, keeping: Keeping) -> BucketRecord {
    BucketRecord { branches, keeping, ..bucket.record() }
}
