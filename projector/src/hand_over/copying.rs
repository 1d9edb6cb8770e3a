//! What the writer does with a vbucket that is handed over to this projector.
//!
//! Mutations follow on what is here. Where the home's log was purged the documents come first, or rather
//! meanwhile: they are read at the home a piece at a time, each as of its own moment, and the log is copied from the
//! purge point on beside them. A document that was read at some moment lacks no mutation before it; and as those
//! behind come by the log, in their order, all documents are right as soon as the log has come to where the vbucket
//! ended when the last of them was read. Only then the vbucket gets its branches, in the batch with which that is
//! so; until then it is here in part ([`is_part`]), and a process that finds it like that begins anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::history::Branches;
use proto::model::homes::HandOver;
use proto::model::ids::Seqno;
use proto::{Error, Result};

use crate::source::bucket::Bucket;
use crate::source::mutation::Mutation;
use crate::source::record::is_part;
use crate::source::store::document_store::{Batch, BucketChanges, StoredDocument};
use crate::source::writer::Writer;

/// A piece of a vbucket's log.
pub struct LogPiece {
    /// They follow on what is here.
    pub mutations: Vec<Mutation>,
    /// Those of the vbucket that begin at or before the last of them; none where the vbucket is here in part with it.
    pub branches: Branches,
    /// Branches that were begun and of which nothing is left.
    pub given_up: Branches,
}

impl Writer {
    /// A vbucket of whose log the home has purged all up to a seqno: its documents follow.
    pub fn begin_documents(
        &self,
        bucket: &Bucket,
        handing: &HandOver,
        purged: Seqno,
    ) -> Result<()> {
        let _agree = self.agree();
        check_comes(bucket, handing)?;
        let vbucket = handing.vbucket;
        let mut branches = bucket.branches();
        branches[usize::from(vbucket.0)].clear();
        let record = bucket.record_with(branches.clone(), (*bucket.keeping()).clone());
        self.store.begin_purged(&record, vbucket, purged)?;
        bucket.copied(branches, (vbucket, purged));
        Ok(())
    }

    /// Some of its documents, as they were at the home at one moment.
    pub fn copy_documents(
        &self,
        bucket: &Bucket,
        handing: &HandOver,
        documents: &[StoredDocument],
    ) -> Result<()> {
        let _agree = self.agree();
        check_comes(bucket, handing)?;
        let end = bucket.durable().get(handing.vbucket).seqno;
        if !is_part(&bucket.branches()[usize::from(handing.vbucket.0)], end) {
            return Err(Error::internal("documents of a vbucket that is here as a whole"));
        }
        self.store.put_documents(bucket.info.id, documents)
    }

    /// A piece of its log.
    pub fn copy(&self, bucket: &Bucket, handing: &HandOver, piece: LogPiece) -> Result<()> {
        let _agree = self.agree();
        check_comes(bucket, handing)?;
        let vbucket = handing.vbucket;
        let LogPiece { mutations, branches: of_vbucket, given_up } = piece;
        let end = bucket.durable().get(vbucket).seqno;
        let follows = |(m, seqno): (&Mutation, u64)| m.seqno.0 == seqno && m.vbucket == vbucket;
        if !mutations.iter().zip(end.0 + 1..).all(follows) {
            let what =
                format!("what was handed over of vbucket {vbucket} does not follow seqno {end}");
            return Err(Error::internal(what));
        }
        let mut branches = bucket.branches();
        branches[usize::from(vbucket.0)] = of_vbucket;
        let mut record = bucket.record_with(branches.clone(), (*bucket.keeping()).clone());
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
}

/// Is this hand-over still under way?
fn check_comes(bucket: &Bucket, handing: &HandOver) -> Result<()> {
    let vbucket = handing.vbucket;
    let is_pending = bucket.homes().handing_of(vbucket) == Some(handing);
    if bucket.is_removed() || !is_pending || bucket.keeping().kept.contains(vbucket) {
        return Err(Error::unavailable(format!("vbucket {vbucket} is not on its way here")));
    }
    Ok(())
}
