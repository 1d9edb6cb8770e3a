//! Description of a segment's items for `sextant inspect`.

use std::path::Path;

use proto::Result;
use proto::env::FileSystem;
use proto::model::ids::{BucketId, ProducerTransactionId, Seqno, TransactionId, VbucketId};
use serde::Serialize;
use storage::log::{
    Lsn, RECORD_OVERHEAD_BYTES, RecordInfo, RecordState, SegmentInfo, scan, segment_log_id,
};

use crate::change_log::items::item::{Item, LogEvent, items};
use proto::model::commits::{Committed, TransactionEvent};

/// A part of a group, or of a damaged place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemContent {
    /// A run of mutations of one vbucket.
    Run {
        /// The vbucket of the run.
        vbucket: VbucketId,
        /// The branch.
        vbuuid: u64,
        /// The first seqno.
        first: Seqno,
        /// The last seqno.
        last: Seqno,
    },
    /// The record of the bucket.
    Record,
    /// A vbucket was rewound to an earlier position.
    Rewind {
        /// The vbucket that was rewound.
        vbucket: VbucketId,
        /// The position.
        to: Seqno,
    },
    /// All data of a vbucket was removed.
    Remove {
        /// The vbucket that was removed.
        vbucket: VbucketId,
    },
    /// An empty vbucket began after a purge point.
    Begin {
        /// The vbucket that was restarted.
        vbucket: VbucketId,
        /// The purge point.
        purged: Seqno,
    },
    /// Copied documents.
    Documents {
        /// The vbucket that was copied.
        vbucket: VbucketId,
        /// The number of copied documents.
        documents: u64,
    },
    /// Purge points.
    Purge {
        /// The last purged mutation of each vbucket.
        points: Vec<(VbucketId, Seqno)>,
    },
    /// The commit of a transaction.
    Committed {
        /// The id of the committed transaction.
        transaction: TransactionId,
        /// The number of documents that it has changed.
        affected: u64,
        /// All buckets that the transaction has changed; empty if it is only this one.
        participants: Vec<BucketId>,
    },
    /// A transaction is prepared.
    Prepared {
        /// The id of the prepared transaction.
        transaction: TransactionId,
        /// The number of documents that it holds.
        documents: u64,
        /// All buckets that it has changed.
        participants: Vec<BucketId>,
    },
    /// A prepared transaction is rolled back.
    RolledBack {
        /// The id of the transaction.
        transaction: TransactionId,
    },
    /// An epoch has the commit of a transaction in all its buckets.
    Settled {
        /// The id of the transaction.
        transaction: TransactionId,
    },
    /// A producer has committed a transaction in several vbuckets.
    Pushed {
        /// The transaction, as its producer numbers it.
        transaction: ProducerTransactionId,
        /// All vbuckets of which it has mutations.
        vbuckets: Vec<VbucketId>,
    },
    /// An epoch has a producer's commit, or its missing parts are no longer waited for.
    PushedSettled {
        /// The transaction, as its producer numbers it.
        transaction: ProducerTransactionId,
    },
    /// The item or the group is damaged.
    Damaged {
        /// The damage.
        what: String,
    },
}

/// An item of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemInfo {
    /// Place in the log.
    pub lsn: Lsn,
    /// Offset of the group in the file.
    pub group_offset: u64,
    /// Bytes of the item, or of the damaged place.
    pub bytes: u64,
    /// The decoded content of the item.
    pub content: ItemContent,
}

/// Passes each item of a segment file to `each`, also after damage, and returns a summary of the segment. The memory is
/// that of the longest group.
pub fn describe(
    fs: &dyn FileSystem,
    path: &Path,
    each: &mut dyn FnMut(&ItemInfo),
) -> Result<SegmentInfo> {
    let log_id = segment_log_id(fs, path)?;
    scan(fs, path, &mut |record, payload| {
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
    let committed = |Committed { transaction, affected, .. }, participants| {
        ItemContent::Committed { transaction, affected, participants }
    };
    match event {
        TransactionEvent::Committed(alone) => committed(alone, Vec::new()),
        TransactionEvent::Joint(joint) => committed(joint.committed, joint.participants),
        TransactionEvent::Prepared(prepared) => ItemContent::Prepared {
            transaction: prepared.transaction,
            documents: prepared.changes.len() as u64,
            participants: prepared.participants.clone(),
        },
        TransactionEvent::RolledBack(transaction) => ItemContent::RolledBack { transaction },
        TransactionEvent::Settled(transaction) => ItemContent::Settled { transaction },
        TransactionEvent::Pushed(commit) => ItemContent::Pushed {
            transaction: commit.transaction,
            vbuckets: commit.parts.iter().map(|part| part.vbucket).collect(),
        },
        TransactionEvent::PushedSettled(transaction) => ItemContent::PushedSettled { transaction },
    }
}
