//! *Bodies*: the changes of open transactions in a stream, sent in addition to frames and long
//! before the commits.
//!
//! Bodies have no seqnos, so they do not wait with the frames, and need no stability timestamp.
//! Each turn of the stream sends at most one message of bodies. For each transaction the stream has
//! a place ([`TransactionReader`]); a message continues from there, even if none of the changes
//! concerns the node, because the node must have the place. When an index has joined, each
//! transaction is sent again from place zero.
//!
//! Changes are sent before later ones are read, so a rollback is sent after the changes that it
//! removes.
//!
//! The beginning of a large commit is announced after the last changes, so that the node can
//! prepare it.
//!
//! If a transaction ends by a large commit, all its changes are still sent, unless the stream has
//! passed the commit (`markers`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::Result;
use proto::env::Bulk;
use proto::expr::Fields;
use proto::model::ids::{NodeId, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{BodiesDigest, KeyVersionsWriter, StreamMessage, TransactionBodies};
use tokio::time::Instant;

use super::context::{INLINE_BYTES, MESSAGE_BYTES, MESSAGE_COST, StreamContext};
use super::markers::{Markers, SentPart};
use crate::keys::{KeyMaker, LeftOutCounters};
use crate::source::Mutation;
use crate::source::view::large_commits::LargeCommit;
use crate::transactions::open::Transactions;
use crate::transactions::reader::{NewChanges, TransactionNews, TransactionReader};

/// The size in memory, in bytes, of the changes that are made into bodies at once, as for frames.
const READ_BYTES: usize = 1 << 20;

/// The positions of a stream in the open transactions, and the next changes to send.
#[derive(Default)]
pub(super) struct Bodies {
    reader: TransactionReader,
    /// Changes that were read and are not sent yet.
    unsent: VecDeque<NewChanges>,
    /// Transactions whose large commit has begun; announced once their changes are sent.
    committing: VecDeque<(TransactionId, TransactionPlace)>,
    /// The digest of the sent changes of each transaction.
    digests: BTreeMap<TransactionId, BodiesDigest>,
    /// True if the last message was too expensive for the stream's own thread.
    is_costly: bool,
    /// For each transaction, the counters of documents that indexes leave out; they are added to
    /// the totals when a marker replaces the mutations.
    left_out: BTreeMap<TransactionId, LeftOutCounters>,
}

/// The node of a stream, and its indexes.
pub(super) struct Receiver {
    pub context: Arc<StreamContext>,
    pub node: NodeId,
    pub indexes: Vec<Arc<IndexInfo>>,
    /// The fields that these indexes read.
    pub fields: Arc<Fields>,
}

impl Bodies {
    /// Restarts all open transactions from place zero.
    pub fn begin_anew(&mut self) {
        self.unsent.clear();
        self.committing.clear();
        self.reader.begin_anew();
    }

    /// Reads new changes, if all earlier ones are sent. Returns the messages about transactions that ended or were rolled back.
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
            *digest = digest.with_back(*to);
        }
        let ended = (!ended.is_empty()).then_some(StreamMessage::TransactionsEnded(ended));
        let back = |(transaction, to)| StreamMessage::TransactionBack { transaction, to };
        ended.into_iter().chain(backs.into_iter().map(back)).collect()
    }

    /// Returns the message about transactions that have ended and that no marker still needs;
    /// `None` if there are none.
    pub fn let_go(&mut self, markers: &Markers) -> Option<StreamMessage> {
        if !self.unsent.is_empty() {
            return None;
        }
        let gone = self.reader.let_go(|id, number| markers.awaits(id, number));
        gone.iter().for_each(|id| self.forget(*id));
        self.committing.retain(|(id, _)| !gone.contains(id));
        (!gone.is_empty()).then_some(StreamMessage::TransactionsEnded(gone))
    }

    fn forget(&mut self, transaction: TransactionId) {
        self.digests.remove(&transaction);
        self.left_out.remove(&transaction);
    }

    /// Adds the documents that indexes leave out of a commit which a marker replaces. Versions that
    /// were rolled back to a savepoint are counted too.
    pub fn count_left_out(&mut self, transaction: TransactionId, counters: &LeftOutCounters) {
        if let Some(of_commit) = self.left_out.remove(&transaction) {
            counters.add(&of_commit);
        }
    }

    /// Returns how much of a commit's changes was sent.
    pub fn sent(&self, commit: &LargeCommit) -> SentPart {
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

    /// Returns the next message; `None` if there is nothing to send. The message is packed on this
    /// thread while the changes are few and the expressions of the indexes cheap, up to
    /// `inline_cost`, otherwise on a thread for bulk work.
    pub async fn next(
        &mut self,
        receiver: impl FnOnce() -> Receiver,
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
            *digest = digest.with_bodies(bodies);
        }
        Ok(Some(StreamMessage::Bodies(packed)))
    }
}

/// Packs changes until a message is full or the expressions have cost `cost_max`; returns the
/// bodies and the cost.
fn pack(
    receiver: &Receiver,
    left_out: &mut BTreeMap<TransactionId, LeftOutCounters>,
    unsent: &mut VecDeque<NewChanges>,
    cost_max: u64,
) -> (Result<Vec<TransactionBodies>>, u64) {
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
        let made = pack_one(&maker, &receiver.indexes, next, room);
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

/// Packs changes of one transaction until the message is full. Returns true as well if no changes
/// are left.
fn pack_one(
    maker: &KeyMaker<'_>,
    indexes: &[Arc<IndexInfo>],
    next: &mut NewChanges,
    (bytes_max, cost_max): (usize, u64),
) -> Result<(TransactionBodies, bool)> {
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
    Ok((TransactionBodies { transaction, from, to, body: writer.finish() }, is_whole))
}
