//! Which vbuckets of a bucket a projector keeps, and what the writer does when that changes
//! ([`proto::homes`] has the steps of a hand-over).
//!
//! What is kept follows from the catalog alone, and is durable with the bucket's record, so that a projector that
//! starts while no coordinator answers goes on with what it had. What is *released* is the projector's own word to the
//! target of a hand-over: it is durable before the word is given, and holds for as long as the catalog has the
//! hand-over.
//!
//! A vbucket that is being copied here is in documents and log like any other, and nobody sees it before it is
//! kept: streams, snapshots and histories are of what is kept. Copies that were given up, and vbuckets that went
//! elsewhere, are removed when the catalog says so.
//!
//! All this runs between the writer's groups, alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::history::Branches;
use proto::homes::{HandOver, Homes, VbucketSet};
use proto::ids::{NodeId, Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use super::bucket::Bucket;
use super::writer::Writer;
use super::{Batch, BucketChanges, BucketRecord, Mutation};

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
    /// The catalog says where the vbuckets are: what is kept changes, and what is left of others goes.
    pub fn keep(&self, bucket: &Bucket, homes: &Arc<Homes>, projector: NodeId) -> Result<()> {
        let _agree = self.agree();
        if bucket.is_removed() {
            return Ok(());
        }
        let before = bucket.keeping();
        let keeping = before.with_homes(homes, projector);
        let comes = |vbucket| homes.handing_of(vbucket).is_some_and(|h| h.to == projector);
        let left = |vbucket| !keeping.kept.contains(vbucket) && !comes(vbucket);
        let mut branches = bucket.branches();
        let gone: Vec<(VbucketId, Seqno)> = bucket
            .durable()
            .iter()
            .filter(|(vbucket, end)| {
                let has_some = end.seqno.0 > 0 || !branches[usize::from(vbucket.0)].is_empty();
                has_some && left(*vbucket)
            })
            .map(|(vbucket, _)| (vbucket, Seqno(0)))
            .collect();
        if keeping != *before {
            self.store.put_records(&[record(bucket, branches.clone(), keeping.clone())])?;
        }
        // Who asks hears of it before the rest is removed, which may take its time.
        bucket.keep(keeping.clone(), Arc::clone(homes), branches.clone());
        if !gone.is_empty() {
            gone.iter().for_each(|(vbucket, _)| branches[usize::from(vbucket.0)].clear());
            let mut record = record(bucket, branches.clone(), keeping);
            record.given_up.retain(|vbucket, _| !gone.iter().any(|(gone, _)| gone == vbucket));
            self.store.rewind(&record, &gone)?;
            bucket.give_up(record.given_up);
            gone.iter()
                .for_each(|(vbucket, end)| bucket.copied(branches.clone(), (*vbucket, *end)));
        }
        (self.moved)(bucket.info.id);
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
        let branches = bucket.branches();
        self.store.put_records(&[record(bucket, branches.clone(), keeping.clone())])?;
        bucket.keep(keeping, bucket.homes(), branches);
        Ok(())
    }

    /// A piece of a vbucket that is handed over to this projector: mutations that follow on what is here.
    pub fn copy(
        &self,
        bucket: &Bucket,
        handing: &HandOver,
        (of_vbucket, given_up): (&Branches, Branches),
        mutations: Vec<Mutation>,
    ) -> Result<()> {
        let _agree = self.agree();
        let vbucket = handing.vbucket;
        let is_pending = bucket.homes().handing_of(vbucket) == Some(handing);
        if bucket.is_removed() || !is_pending || bucket.keeping().kept.contains(vbucket) {
            return Err(Error::unavailable(format!("vbucket {vbucket} is not on its way here")));
        }
        let end = bucket.durable().get(vbucket).seqno;
        if !mutations
            .iter()
            .zip(end.0 + 1..)
            .all(|(m, seqno)| m.seqno.0 == seqno && m.vbucket == vbucket)
        {
            let what =
                format!("what was handed over of vbucket {vbucket} does not follow seqno {end}");
            return Err(Error::internal(what));
        }
        let mut branches = bucket.branches();
        branches[usize::from(vbucket.0)].clone_from(of_vbucket);
        let mut record = record(bucket, branches.clone(), Keeping::clone(&bucket.keeping()));
        record.given_up.insert(vbucket, given_up);
        let given_up = record.given_up.clone();
        let mutations: Vec<_> = mutations.into_iter().map(Arc::new).collect();
        let last = mutations.iter().enumerate().map(|(n, m)| (Arc::clone(&m.id), n)).collect();
        let end = mutations.last().map_or(end, |mutation| mutation.seqno);
        let changes = BucketChanges { mutations, last, record: Some(record) };
        let batch = Batch { buckets: BTreeMap::from([(bucket.info.id, changes)]) };
        self.store.commit(&batch).inspect_err(|_| self.failed.notify_one())?;
        bucket.give_up(given_up);
        bucket.copied(branches, (vbucket, end));
        Ok(())
    }

    /// Removes what was copied of a vbucket: it is no longer of its history.
    pub fn forget(&self, bucket: &Bucket, vbucket: VbucketId) -> Result<()> {
        let _agree = self.agree();
        if bucket.is_removed() || bucket.keeping().kept.contains(vbucket) {
            return Ok(());
        }
        let mut branches = bucket.branches();
        branches[usize::from(vbucket.0)].clear();
        let record = record(bucket, branches.clone(), Keeping::clone(&bucket.keeping()));
        self.store.rewind(&record, &[(vbucket, Seqno(0))])?;
        bucket.copied(branches, (vbucket, Seqno(0)));
        Ok(())
    }
}

fn record(bucket: &Bucket, branches: Vec<Branches>, keeping: Keeping) -> BucketRecord {
    BucketRecord { branches, keeping, ..bucket.record() }
}
