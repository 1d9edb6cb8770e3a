//! *Bodies*: the changes of open transactions, which a stream sends to its node long before the
//! transactions commit, so that the node can prepare for large commits.
//!
//! Bodies have no seqnos. So they are sent apart from the frames, which carry the committed
//! mutations, and wait for no stability timestamp. Each turn of the stream sends at most one
//! message of bodies. For each transaction the stream counts the changes that it has read
//! ([`TransactionReader`]), and the next message continues after them. A message is sent even if
//! none of its changes concerns the node, because the node must know this count. When an index
//! joins the stream, the changes of each open transaction are sent again from the first one.
//!
//! All changes that were read are sent before further ones are read. So a rollback is sent after
//! the changes that it removes.
//!
//! When a large commit begins, the stream announces it to the node after the last changes.
//!
//! If a transaction ends with a large commit, the stream still sends the remaining changes,
//! unless it has passed the mutations of the commit already (`markers`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::Result;
use proto::env::Bulk;
use proto::expr::Fields;
use proto::model::ids::{NodeId, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{ChangesDigest, KeyVersionsWriter, StreamMessage, UncommittedChanges};
use tokio::time::Instant;

use super::context::{INLINE_BYTES, MESSAGE_BYTES, MESSAGE_COST, StreamContext};
use super::markers::{Markers, SentPart};
use crate::keys::{KeyMaker, LeftOutCounters};
use crate::source::Mutation;
use crate::source::view::large_commits::LargeCommit;
use crate::transactions::open::Transactions;
use crate::transactions::reader::{NewChanges, TransactionNews, TransactionReader};

/// The size in memory, in bytes, of the changes that are read and converted into bodies at once;
/// the same as for frames.
const READ_BYTES: usize = 1 << 20;

/// The progress of a stream through each open transaction, and the changes that it sends next.
#[derive(Default)]
pub(super) struct Bodies {
    reader: TransactionReader,
    /// Changes that were read and are not sent yet.
    unsent: VecDeque<NewChanges>,
    /// Transactions whose large commit has begun. The node is informed of that once the changes
    /// are sent.
    committing: VecDeque<(TransactionId, TransactionPlace)>,
    /// For each transaction, the digest of the changes that were sent.
    digests: BTreeMap<TransactionId, ChangesDigest>,
    /// True if the last message took so much work that the next one is packed on another thread.
    is_costly: bool,
    /// For each transaction, the numbers of documents that indexes leave out. They are added to
    /// the totals if the commit's marker is sent instead of its mutations.
    left_out: BTreeMap<TransactionId, LeftOutCounters>,
}

/// The node that a stream sends to, with its indexes of the bucket.
pub(super) struct BodiesReceiver {
    pub context: Arc<StreamContext>,
    pub node: NodeId,
    pub indexes: Vec<Arc<IndexInfo>>,
    /// The fields that these indexes read.
    pub fields: Arc<Fields>,
}

impl Bodies {
    /// Makes the stream send the changes of each open transaction again, from the first one.
    pub fn restart_all(&mut self) {
        self.unsent.clear();
        self.committing.clear();
        self.reader.restart_all();
    }

    /// Reads new changes of the open transactions, if all earlier ones were sent. Returns the
    /// messages about transactions that have ended or were rolled back to a savepoint.
    pub fn read(&mut self, transactions: &Transactions) -> Vec<StreamMessage> {
        if !self.unsent.is_empty() {
            return Vec::new();
        }
        let TransactionNews { ended, backs, changes, committing } =
            self.reader.next(transactions, READ_BYTES, Instant::now());
        self.unsent = changes.into();
        self.committing.extend(committing);
        ended.iter().for_each(|id| self.forget(*id));
        self.committing.retain(|(id, _)| !ended.contains(id));
        for (id, to) in &backs {
            let digest = self.digests.entry(*id).or_default();
            *digest = digest.with_rollback(*to);
        }
        let ended = (!ended.is_empty()).then_some(StreamMessage::TransactionsEnded(ended));
        let back = |(transaction, to)| StreamMessage::TransactionBack { transaction, to };
        ended.into_iter().chain(backs.into_iter().map(back)).collect()
    }

    /// Forgets the transactions that have ended and whose changes no commit marker still needs.
    /// Returns the message about them; `None` if there are none.
    pub fn forget_ended(&mut self, markers: &Markers) -> Option<StreamMessage> {
        if !self.unsent.is_empty() {
            return None;
        }
        let gone = self.reader.forget_ended(|id, number| markers.needs_bodies(id, number));
        gone.iter().for_each(|id| self.forget(*id));
        self.committing.retain(|(id, _)| !gone.contains(id));
        (!gone.is_empty()).then_some(StreamMessage::TransactionsEnded(gone))
    }

    /// Removes the digest and the counts of a transaction.
    fn forget(&mut self, transaction: TransactionId) {
        self.digests.remove(&transaction);
        self.left_out.remove(&transaction);
    }

    /// Adds the counts of documents that indexes leave out of a commit, when the commit's marker
    /// is sent instead of its mutations. Versions that were rolled back to a savepoint are
    /// counted too.
    pub fn count_left_out(&mut self, transaction: TransactionId, counters: &LeftOutCounters) {
        if let Some(of_commit) = self.left_out.remove(&transaction) {
            counters.add(&of_commit);
        }
    }

    /// Returns whether the changes of a large commit were sent as bodies: all, not all yet, or
    /// never all.
    pub fn sent_part(&self, commit: &LargeCommit) -> SentPart {
        let LargeCommit { transaction, number, place, .. } = commit;
        let Some(read_to) = self.reader.place_of((*transaction, *number), *place) else {
            return SentPart::Lost;
        };
        let is_unsent = self.unsent.iter().any(|changes| changes.transaction == *transaction);
        match self.digests.get(transaction) {
            Some(digest) if read_to == *place && !is_unsent => SentPart::Whole(*digest),
            _ => SentPart::Partly,
        }
    }

    /// Returns the next message with bodies; `None` if there is nothing to send. A cheap message,
    /// with few changes and index expressions that cost at most `inline_cost`, is packed on this
    /// thread, any other on a thread for bulk work.
    pub async fn next(
        &mut self,
        receiver: impl FnOnce() -> BodiesReceiver,
        inline_cost: u64,
    ) -> Result<Option<StreamMessage>> {
        if self.unsent.is_empty() {
            let committing = self.committing.pop_front();
            return Ok(committing
                .map(|(transaction, place)| StreamMessage::Committing { transaction, place }));
        }
        let receiver = receiver();
        let (mut unsent, mut left_out) =
            (std::mem::take(&mut self.unsent), std::mem::take(&mut self.left_out));
        let (packed, spent);
        let bytes =
            |changes: &NewChanges| changes.changes.iter().map(|one| one.bytes()).sum::<usize>();
        if self.is_costly || unsent.iter().map(bytes).sum::<usize>() > INLINE_BYTES {
            let env = receiver.context.env.clone();
            let work = move || {
                let packed = pack(&receiver, &mut left_out, &mut unsent, MESSAGE_COST);
                (unsent, left_out, packed)
            };
            (unsent, left_out, (packed, spent)) = env.bulk(Bulk::AtOnce, work).await;
        } else {
            (packed, spent) = pack(&receiver, &mut left_out, &mut unsent, inline_cost);
        }
        (self.unsent, self.left_out) = (unsent, left_out);
        self.is_costly = spent >= inline_cost;
        let packed = packed?;
        for bodies in &packed {
            let digest = self.digests.entry(bodies.transaction).or_default();
            *digest = digest.with_changes(bodies);
        }
        Ok(Some(StreamMessage::Bodies(packed)))
    }
}

/// Packs changes into bodies until a message is full, or the index expressions have cost
/// `cost_max`. Returns the bodies and the cost.
fn pack(
    receiver: &BodiesReceiver,
    left_out: &mut BTreeMap<TransactionId, LeftOutCounters>,
    unsent: &mut VecDeque<NewChanges>,
    cost_max: u64,
) -> (Result<Vec<UncommittedChanges>>, u64) {
    let (mut packed, mut bytes, mut spent) = (Vec::new(), 0, 0);
    while bytes < MESSAGE_BYTES
        && spent < cost_max
        && let Some(next) = unsent.front_mut()
    {
        let left_out = left_out.entry(next.transaction).or_default();
        if next.from == TransactionPlace(0) {
            // The transaction is sent again from its beginning.
            *left_out = LeftOutCounters::default();
        }
        let maker = KeyMaker {
            node: receiver.node,
            router: &*receiver.context.router,
            left_out,
            fields: &receiver.fields,
            spent: spent.into(),
        };
        let room = (MESSAGE_BYTES - bytes, cost_max);
        let made = pack_transaction(&maker, &receiver.indexes, next, room);
        spent = maker.spent.get();
        let (body, is_whole) = match made {
            Ok(made) => made,
            Err(error) => return (Err(error), spent),
        };
        bytes += body.bytes();
        packed.push(body);
        if is_whole {
            unsent.pop_front();
        }
    }
    (Ok(packed), spent)
}

/// Packs changes of one transaction until the message is full. Also returns true if all changes
/// of the transaction were packed.
fn pack_transaction(
    maker: &KeyMaker<'_>,
    indexes: &[Arc<IndexInfo>],
    next: &mut NewChanges,
    (bytes_max, cost_max): (usize, u64),
) -> Result<(UncommittedChanges, bool)> {
    let (transaction, from) = (next.transaction, next.from);
    let (mut writer, mut taken) = (KeyVersionsWriter::default(), 0);
    for change in &next.changes {
        if writer.len() >= bytes_max || maker.spent.get() >= cost_max {
            break;
        }
        // The transaction keeps its changes for long, and the parsed documents must not stay with them.
        let Mutation { vbucket, seqno, id, kind, document, .. } = &**change;
        let parsed = Mutation::new((*vbucket, *seqno), Arc::clone(id), *kind, document.clone());
        maker.mutation(indexes, &parsed, seqno.0 - from.0, &mut writer)?;
        taken += 1;
    }
    let last = next.changes.drain(..taken).next_back();
    let last = last.map_or(from, |last: Arc<Mutation>| TransactionPlace(last.seqno.0));
    let is_whole = next.changes.is_empty();
    // Behind the last change others may have been rolled back.
    let to = if is_whole { next.to } else { last };
    next.from = to;
    Ok((UncommittedChanges { transaction, from, to, body: writer.finish() }, is_whole))
}
