//! The steps of a bucket's writer that copy a vbucket from its present owner to this projector.
//!
//! Mutations are appended to the stored ones. If the owner's log was purged, the documents are
//! copied too. Each message with documents shows them at a different moment. At the same time the
//! log is copied, from the purge point on. A document includes all mutations before the moment at
//! which it was read, and the log contains all later ones in order. So all documents are correct
//! once the log has reached the end that the vbucket had when the last document was read. The
//! last step, which reaches that end, also stores the vbucket's branches. Until then the vbucket
//! is partial ([`is_partial`]), and a process that finds it partial restarts the copy.

use std::sync::Arc;

use proto::model::assignment::HandOver;
use proto::model::history::Branches;
use proto::model::ids::Seqno;
use proto::model::pushed_commit::PushedCommit;
use proto::{Error, Result};

use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use documents::document_store::{Batch, StoredDocument};
use documents::mutation::Mutation;
use documents::record::is_partial;

/// A range of a vbucket's log that is copied from the owner.
pub struct LogPiece {
    /// The mutations of the range; the first one follows the vbucket's last stored mutation.
    pub mutations: Vec<Mutation>,
    /// The branches that begin at or before the last mutation; empty while the vbucket stays
    /// partial.
    pub branches: Branches,
    /// Branches that a producer has begun, and that have no mutations any more.
    pub given_up: Branches,
    /// The open commits of the producer's transactions that have mutations in the vbucket.
    pub pushed: Vec<PushedCommit>,
}

impl Writer {
    /// Starts the copy of a vbucket whose log the owner has purged up to a seqno. The next step
    /// must copy its documents.
    pub fn begin_document_copy(
        &self,
        bucket: &Bucket,
        transfer: &HandOver,
        purged: Seqno,
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_hand_over_pending(bucket, transfer)?;
        let vbucket = transfer.vbucket;
        let mut branches = bucket.branches();
        branches[usize::from(vbucket.0)].clear();
        let record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        self.store.begin_purged(&record, vbucket, purged)?;
        bucket.set_copied(branches, [(vbucket, purged)]);
        Ok(())
    }

    /// Stores documents of a vbucket, which the owner has read as of one moment.
    pub fn store_copied_documents(
        &self,
        bucket: &Bucket,
        transfer: &HandOver,
        documents: &[StoredDocument],
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_hand_over_pending(bucket, transfer)?;
        let end = bucket.durable().get(transfer.vbucket).seqno;
        if !is_partial(&bucket.branches()[usize::from(transfer.vbucket.0)], end) {
            return Err(Error::internal("documents of a vbucket that is not partial"));
        }
        self.store.put_documents(bucket.info.id, documents)
    }

    /// Stores a range of a vbucket's log.
    pub fn store_log_range(
        &self,
        bucket: &Bucket,
        transfer: &HandOver,
        piece: LogPiece,
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_hand_over_pending(bucket, transfer)?;
        let vbucket = transfer.vbucket;
        let LogPiece { mutations, branches: of_vbucket, given_up, pushed } = piece;
        let end = bucket.durable().get(vbucket).seqno;
        let follows = |(m, seqno): (&Mutation, u64)| m.seqno.0 == seqno && m.vbucket == vbucket;
        if !mutations.iter().zip(end.0 + 1..).all(follows) {
            let what =
                format!("the received mutations of vbucket {vbucket} do not follow seqno {end}");
            return Err(Error::internal(what));
        }
        let mut branches = bucket.branches();
        branches[usize::from(vbucket.0)] = of_vbucket;
        let mut record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        record.given_up.insert(vbucket, given_up);
        let given_up = record.given_up.clone();
        let mutations: Vec<_> = mutations.into_iter().map(Arc::new).collect();
        let end = mutations.last().map_or(end, |mutation| mutation.seqno);
        // Epochs must not have a part of such a commit here before the others are there.
        let commits = bucket.steps_for_received(vbucket, pushed)?;
        let events = commits.clone();
        let batch = Batch { mutations, record: Some(record), commits };
        self.store.commit(bucket.info.id, batch).inspect_err(|_| self.failed.notify_one())?;
        bucket.add_events(&events);
        bucket.set_given_up(given_up);
        bucket.set_copied(branches, [(vbucket, end)]);
        Ok(())
    }
}

/// Returns an error if the hand-over is no longer in progress.
fn check_hand_over_pending(bucket: &Bucket, transfer: &HandOver) -> Result<()> {
    let vbucket = transfer.vbucket;
    let is_pending = bucket.assignment().transfer_of(vbucket) == Some(transfer);
    if bucket.is_removed() || !is_pending || bucket.ownership().owned.contains(vbucket) {
        return Err(Error::unavailable(format!(
            "vbucket {vbucket} is not being handed over to this projector"
        )));
    }
    Ok(())
}
