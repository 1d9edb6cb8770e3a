//! Describes the items of a log segment for `sextant inspect`.

use std::path::Path;

use proto::Result;
use proto::env::FileSystem;
use proto::model::ids::{BucketId, ProducerTransactionId, Seqno, TransactionId, VbucketId};
use serde::Serialize;
use storage::log::{
    Lsn, RECORD_OVERHEAD_BYTES, RecordInfo, RecordState, SegmentInfo, scan_segment, segment_log_id,
};

use crate::change_log::items::item::{Item, LogEvent, items};
use proto::model::commits::{CommittedTransaction, TransactionEvent};
use proto::model::open_commit::{CommitId, OpenCommit};

/// The decoded content of a log item, or a description of damage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemContent {
    /// A run of mutations of one vbucket.
    Run {
        /// The vbucket of the run.
        vbucket: VbucketId,
        /// The number of the branch of the run's mutations.
        vbuuid: u64,
        /// The first seqno of the run.
        first: Seqno,
        /// The last seqno of the run.
        last: Seqno,
    },
    /// A new version of the bucket's record.
    Record,
    /// A vbucket was rewound to an earlier position.
    Rewind {
        /// The vbucket that was rewound.
        vbucket: VbucketId,
        /// The last seqno that remains.
        to: Seqno,
    },
    /// All data of a vbucket was removed.
    Remove {
        /// The vbucket that was removed.
        vbucket: VbucketId,
    },
    /// The log of an empty vbucket was begun after a purge point, because its documents are
    /// copied from another projector.
    Begin {
        /// The vbucket whose log was begun.
        vbucket: VbucketId,
        /// The seqno of the purge point.
        purged: Seqno,
    },
    /// Documents that were copied from another projector.
    Documents {
        /// The vbucket that was copied.
        vbucket: VbucketId,
        /// The number of copied documents.
        documents: u64,
    },
    /// New purge points of some vbuckets.
    Purge {
        /// The last purged mutation of each vbucket.
        points: Vec<(VbucketId, Seqno)>,
    },
    /// The commit of a transaction.
    Committed {
        /// The id of the committed transaction.
        transaction: TransactionId,
        /// The number of documents that the transaction has changed.
        affected: u64,
        /// All buckets that the transaction has changed; empty if it has changed only this bucket.
        participants: Vec<BucketId>,
    },
    /// The preparation of a transaction over several buckets.
    Prepared {
        /// The id of the prepared transaction.
        transaction: TransactionId,
        /// The number of documents that it has changed.
        documents: u64,
        /// All buckets that it has changed.
        participants: Vec<BucketId>,
    },
    /// The rollback of a prepared transaction.
    RolledBack {
        /// The id of the transaction.
        transaction: TransactionId,
    },
    /// A producer has committed a transaction in several vbuckets.
    Pushed {
        /// The transaction, as its producer numbers it.
        transaction: ProducerTransactionId,
        /// All vbuckets in which the transaction has mutations.
        vbuckets: Vec<VbucketId>,
    },
    /// A commit of several parts has ended: an epoch has it, or its missing parts were given up.
    Settled {
        /// The identity of the commit.
        commit: CommitId,
    },
    /// A damaged item or group.
    Damaged {
        /// A description of the damage.
        what: String,
    },
}

/// An item of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemInfo {
    /// LSN of the item.
    pub lsn: Lsn,
    /// The offset in the segment file at which the item's group begins.
    pub group_offset: u64,
    /// The number of bytes of the item, or of the damaged range.
    pub bytes: u64,
    /// The decoded content of the item.
    pub content: ItemContent,
}

/// Passes each item of a segment file to `each`, and continues after damage. Returns a summary of
/// the segment. Uses as much memory as the longest group.
pub fn describe(
    fs: &dyn FileSystem,
    path: &Path,
    each: &mut dyn FnMut(&ItemInfo),
) -> Result<SegmentInfo> {
    let log_id = segment_log_id(fs, path)?;
    scan_segment(fs, path, &mut |record, payload| {
        let RecordInfo { offset, lsn, bytes, mark, state, .. } = *record;
        let damaged = |lsn, bytes, what: &str| {
            let content = ItemContent::Damaged { what: what.into() };
            ItemInfo { lsn, group_offset: offset, bytes, content }
        };
        match state {
            RecordState::Ok if mark => {}
            RecordState::Ok => {
                let mut at = lsn + RECORD_OVERHEAD_BYTES;
                for item in items(log_id, at, payload) {
                    let info = item.and_then(|item| {
                        let bytes = u64::from(item.header.item_bytes());
                        at = item.lsn + bytes;
                        let content = content(&item)?;
                        Ok(ItemInfo { lsn: item.lsn, group_offset: offset, bytes, content })
                    });
                    each(&info.unwrap_or_else(|error| damaged(at, 0, &error.message)));
                }
            }
            RecordState::BadPayload => each(&damaged(lsn, bytes, "a group with a bad payload")),
            RecordState::Unreadable => each(&damaged(lsn, bytes, "no group begins here")),
        }
    })
}

fn content(item: &Item<'_>) -> Result<ItemContent> {
    Ok(match item.event()? {
        LogEvent::Run(run) => {
            run.mutations().try_for_each(|mutation| mutation.map(drop))?;
            let (vbucket, vbuuid) = (run.vbucket, run.vbuuid.0);
            ItemContent::Run { vbucket, vbuuid, first: run.first, last: run.last }
        }
        LogEvent::Record(..) => ItemContent::Record,
        LogEvent::Rewind { vbucket, to } => ItemContent::Rewind { vbucket, to },
        LogEvent::Remove { vbucket } => ItemContent::Remove { vbucket },
        LogEvent::Begin { vbucket, purged } => ItemContent::Begin { vbucket, purged },
        LogEvent::Documents { vbucket, documents } => {
            ItemContent::Documents { vbucket, documents: documents.len() as u64 }
        }
        LogEvent::Purge { points } => ItemContent::Purge { points },
        LogEvent::Transaction(event) => transaction(event),
    })
}

fn transaction(event: TransactionEvent) -> ItemContent {
    let committed = |CommittedTransaction { transaction, affected, .. }, participants| {
        ItemContent::Committed { transaction, affected, participants }
    };
    match event {
        TransactionEvent::Committed(alone) => committed(alone, Vec::new()),
        TransactionEvent::Opened(OpenCommit::Joint(joint)) => {
            committed(joint.committed, joint.participants)
        }
        TransactionEvent::Prepared(prepared) => ItemContent::Prepared {
            transaction: prepared.transaction,
            documents: prepared.changes.len() as u64,
            participants: prepared.participants.clone(),
        },
        TransactionEvent::RolledBack(transaction) => ItemContent::RolledBack { transaction },
        TransactionEvent::Settled(commit) => ItemContent::Settled { commit },
        TransactionEvent::Opened(OpenCommit::Pushed(commit)) => ItemContent::Pushed {
            transaction: commit.transaction,
            vbuckets: commit.parts.iter().map(|part| part.vbucket).collect(),
        },
    }
}
