//! Decodes groups and their items.

use std::sync::Arc;

use bytes::Bytes;
use proto::model::ids::{Seqno, TransactionId, VbucketId, Vbuuid};
use proto::model::joint::PreparedTransaction;
use proto::rpc::mutation::MutationKind;
use proto::rpc::varint::{take_bytes, take_varint};
use proto::{Error, ErrorCode, Result};
use storage::log::Lsn;

use super::format::{ItemHeader, ItemKind, PURGE_POINT_BYTES, RunHead, u64_at};
use super::prepared_places::{PreparedPlace, PreparedPlaces, StoredCommits};
use super::state::Change;
use crate::document_store::StoredDocument;
use crate::record::BucketRecord;
use proto::model::commits::TransactionEvent;

/// The place of a mutation in a change log: the item of its run, and the offset in the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MutationPlace {
    /// The LSN of the item that contains the mutation's run.
    pub item: Lsn,
    /// The size in bytes of that item.
    pub item_bytes: u32,
    /// The offset of the mutation from the beginning of the item.
    pub offset: u32,
}

/// An event of a bucket that the log records.
#[derive(Debug)]
pub enum LogEvent<'a> {
    /// A run of mutations: one vbucket, one branch, contiguous seqnos.
    Run(Run<'a>),
    /// The record of the bucket was replaced. `PreparedPlaces` names the places in the log at
    /// which the changes of prepared transactions are.
    Record(Box<BucketRecord>, PreparedPlaces),
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
    /// Documents of a vbucket were copied from another projector.
    Documents {
        /// The vbucket of the copied documents.
        vbucket: VbucketId,
        /// The copied documents.
        documents: Vec<StoredDocument>,
    },
    /// The oldest mutations of some vbuckets were purged.
    Purge {
        /// The last purged mutation of each vbucket.
        points: Vec<(VbucketId, Seqno)>,
    },
    /// A step of a transaction, such as its commit. The mutations of a commit are in the same
    /// group.
    Transaction(TransactionEvent),
}

/// A run of mutations: one vbucket, one branch, contiguous seqnos.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The vbucket of the run.
    pub vbucket: VbucketId,
    /// The branch of the mutations.
    pub vbuuid: Vbuuid,
    /// The first seqno of the run.
    pub first: Seqno,
    /// The last seqno of the run.
    pub last: Seqno,
    /// LSN of the run's item.
    item: Lsn,
    item_bytes: u32,
    mutations: &'a [u8],
}

/// A mutation, borrowed from the encoded bytes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMutation<'a> {
    /// The place of the mutation in the log.
    pub place: MutationPlace,
    /// The position of the mutation in its vbucket.
    pub seqno: Seqno,
    /// The kind of the change: the document was written or deleted.
    pub kind: MutationKind,
    /// The document's id.
    pub id: &'a str,
    /// The document (JSON); empty for a deletion.
    pub document: &'a [u8],
}

impl RunMutation<'_> {
    /// Returns the bytes that the mutation adds to the size of the log; see
    /// [`entry_bytes`](crate::mutation::entry_bytes).
    pub(in crate::change_log) fn entry_bytes(&self) -> u64 {
        24 + self.id.len() as u64 + self.document.len() as u64
    }
}

impl<'a> Run<'a> {
    /// Returns the mutations in order. The iterator ends after an error.
    pub fn mutations(&self) -> impl Iterator<Item = Result<RunMutation<'a>>> + use<'a> {
        let Self { first, last, item, item_bytes, mutations, .. } = *self;
        let (mut rest, mut next) = (mutations, first.0);
        std::iter::from_fn(move || {
            if next > last.0 {
                let extra = std::mem::take(&mut rest);
                return (!extra.is_empty())
                    .then(|| Err(corrupt("a run with more bytes than its mutations have")));
            }
            let offset = item_bytes - rest.len() as u32;
            let place = MutationPlace { item, item_bytes, offset };
            let found = take_mutation(&mut rest, place, Seqno(next));
            next = if found.is_ok() { next + 1 } else { u64::MAX };
            if found.is_err() {
                rest = &[];
            }
            Some(found)
        })
    }
}

fn take_mutation<'a>(
    rest: &mut &'a [u8],
    place: MutationPlace,
    seqno: Seqno,
) -> Result<RunMutation<'a>> {
    let head = take_varint(rest)?;
    let len = usize::try_from(head >> 1).unwrap_or(usize::MAX);
    let (id, tail) =
        rest.split_at_checked(len).ok_or_else(|| corrupt("a run that ends in an id"))?;
    *rest = tail;
    let id = std::str::from_utf8(id).map_err(|_| corrupt("an id that is not UTF-8"))?;
    let (kind, document) = match head & 1 {
        0 => (MutationKind::Upsert, take_bytes(rest)?),
        _ => (MutationKind::Deletion, &[][..]),
    };
    Ok(RunMutation { place, seqno, kind, id, document })
}

/// An item of a group whose checksum is valid.
#[derive(Clone, Copy, Debug)]
pub(in crate::change_log) struct Item<'a> {
    pub(in crate::change_log) lsn: Lsn,
    pub(in crate::change_log) header: ItemHeader,
    pub(super) body: &'a [u8],
}

/// Returns the items of a group whose first item begins at `lsn`. The iterator ends after an
/// error.
pub(in crate::change_log) fn items(
    log_id: u64,
    mut lsn: Lsn,
    payload: &[u8],
) -> impl Iterator<Item = Result<Item<'_>>> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let found = ItemHeader::take(&mut rest)
            .filter(|(header, body)| header.is_valid((log_id, lsn), body));
        let Some((header, body)) = found else {
            rest = &[];
            return Some(Err(corrupt(&format!("the item at LSN {lsn} is damaged"))));
        };
        let item = Item { lsn, header, body };
        lsn += u64::from(header.item_bytes());
        Some(Ok(item))
    })
}

impl<'a> Item<'a> {
    /// Returns the run that the item contains, and its fixed fields; `None` if the item is not a
    /// run.
    pub(in crate::change_log) fn run(&self) -> Result<Option<(RunHead, Run<'a>)>> {
        if self.header.kind != ItemKind::Run {
            return Ok(None);
        }
        let mut mutations = self.body;
        let head = RunHead::take(&mut mutations)
            .filter(|head| {
                let count = head.last.0.wrapping_sub(head.first.0);
                head.first.0 > 0 && head.last >= head.first && count < u64::from(u32::MAX)
            })
            .ok_or_else(|| corrupt("the head of a run"))?;
        let RunHead { vbuuid, first, last, .. } = head;
        let (item, item_bytes) = (self.lsn, self.header.item_bytes());
        let vbucket = self.header.vbucket;
        Ok(Some((head, Run { vbucket, vbuuid, first, last, item, item_bytes, mutations })))
    }

    /// Returns the changes that the item makes to the positions of vbuckets.
    pub(in crate::change_log) fn changes(&self) -> Result<Vec<(VbucketId, Change)>> {
        let vbucket = self.header.vbucket;
        let of_one = |change| Ok(vec![(vbucket, change)]);
        match self.header.kind {
            ItemKind::Record
            | ItemKind::Documents
            | ItemKind::Committed
            | ItemKind::Transaction => Ok(Vec::new()),
            ItemKind::Remove => of_one(Change::Remove),
            ItemKind::Begin => {
                let [purged] = self.words()?;
                of_one(Change::Begin { purged: Seqno(purged) })
            }
            ItemKind::Rewind => {
                let [to, bytes] = self.words()?;
                of_one(Change::Rewind { to: Seqno(to), bytes })
            }
            ItemKind::Run => match self.run()? {
                Some((RunHead { first, last, bytes_before, bytes, .. }, _)) => {
                    let item_bytes = self.header.item_bytes();
                    of_one(Change::Run { first, last, bytes_before, bytes, item_bytes })
                }
                None => Ok(Vec::new()),
            },
            ItemKind::Purge => {
                let points = self.body.chunks(PURGE_POINT_BYTES);
                let point = |point: &[u8]| {
                    if point.len() < PURGE_POINT_BYTES {
                        return Err(corrupt("a purge point that is cut short"));
                    }
                    let vbucket = VbucketId(u16::from_le_bytes([point[0], point[1]]));
                    let (to, bytes) = (Seqno(u64_at(point, 2)), u64_at(point, 10));
                    Ok((vbucket, Change::Purge { to, bytes }))
                };
                points.map(point).collect()
            }
        }
    }

    /// Returns the step of a transaction that the item contains; `None` if the item is of another
    /// kind or cannot be decoded.
    pub(in crate::change_log) fn transaction(&self) -> Option<TransactionEvent> {
        (self.header.kind == ItemKind::Transaction)
            .then(|| postcard::from_bytes(self.body).ok())
            .flatten()
    }

    /// Decodes the event that the item contains.
    pub(in crate::change_log) fn event(&self) -> Result<LogEvent<'a>> {
        let vbucket = self.header.vbucket;
        Ok(match self.header.kind {
            ItemKind::Run => match self.run()? {
                Some((_, run)) => LogEvent::Run(run),
                None => return Err(corrupt("the head of a run")),
            },
            ItemKind::Record => {
                let damaged = |error| corrupt(&format!("the record of the bucket: {error}"));
                let (mut record, rest): (BucketRecord, _) =
                    postcard::take_from_bytes(self.body).map_err(damaged)?;
                let StoredCommits { commits, places } = StoredCommits::decode(rest)
                    .map_err(|error| corrupt(&format!("the record of the bucket: {error}")))?;
                record.commits = commits;
                LogEvent::Record(Box::new(record), places)
            }
            ItemKind::Committed => {
                let committed = postcard::from_bytes(self.body)
                    .map_err(|error| corrupt(&format!("the commit of a transaction: {error}")))?;
                LogEvent::Transaction(TransactionEvent::Committed(committed))
            }
            ItemKind::Transaction => {
                let event = postcard::from_bytes(self.body)
                    .map_err(|error| corrupt(&format!("what became of a transaction: {error}")))?;
                LogEvent::Transaction(event)
            }
            ItemKind::Rewind => {
                let [to, _] = self.words()?;
                LogEvent::Rewind { vbucket, to: Seqno(to) }
            }
            ItemKind::Remove => LogEvent::Remove { vbucket },
            ItemKind::Begin => {
                let [purged] = self.words()?;
                LogEvent::Begin { vbucket, purged: Seqno(purged) }
            }
            ItemKind::Documents => {
                LogEvent::Documents { vbucket, documents: documents(self.body)? }
            }
            ItemKind::Purge => {
                let point = |(vbucket, change)| match change {
                    Change::Purge { to, .. } => Some((vbucket, to)),
                    _ => None,
                };
                LogEvent::Purge { points: self.changes()?.into_iter().filter_map(point).collect() }
            }
        })
    }

    fn words<const N: usize>(&self) -> Result<[u64; N]> {
        if self.body.len() != 8 * N {
            return Err(corrupt("an item of a wrong length"));
        }
        Ok(std::array::from_fn(|n| u64_at(self.body, 8 * n)))
    }
}

fn documents(mut rest: &[u8]) -> Result<Vec<StoredDocument>> {
    let mut documents = Vec::new();
    while !rest.is_empty() {
        let id = take_bytes(&mut rest)?;
        let id = std::str::from_utf8(id).map_err(|_| corrupt("an id that is not UTF-8"))?;
        let seqno = Seqno(take_varint(&mut rest)?);
        let document = Bytes::copy_from_slice(take_bytes(&mut rest)?);
        documents.push(StoredDocument { id: id.to_owned(), seqno, document });
    }
    Ok(documents)
}

/// Decodes a prepared transaction from the bytes of its item, which begins at `place`.
pub(in crate::change_log) fn prepared_at(
    log_id: u64,
    (transaction, place): (TransactionId, PreparedPlace),
    bytes: &[u8],
) -> Result<Arc<PreparedTransaction>> {
    let damaged = || corrupt(&format!("the changes of prepared transaction {transaction}"));
    let item = items(log_id, place.item, bytes).next().ok_or_else(damaged)??;
    match item.transaction() {
        Some(TransactionEvent::Prepared(found)) if found.transaction == transaction => Ok(found),
        _ => Err(damaged()),
    }
}

pub(super) fn corrupt(what: &str) -> Error {
    Error::new(ErrorCode::Corrupt, format!("damaged group of the change log: {what}"))
}
