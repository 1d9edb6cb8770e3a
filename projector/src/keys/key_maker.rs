//! Builds the key-versions of documents for one node. A key-version is a document's version with
//! its entries in the indexes of the node.
//!
//! A document is routed before it is evaluated: by its id, or by the expressions that the index
//! is partitioned by. The predicate, the keys and the included values are evaluated only for the
//! nodes with a copy of the document's slice, and not for the nodes that have other slices. Any
//! other node receives the document without entries, or nothing at all. A document whose
//! partition expressions exceed their limit belongs to no slice; the first node of slice 0 then
//! evaluates whether the index leaves it out.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use proto::expr::cost::CostMeter;
use proto::expr::eval::{DocumentScope, EvalError, Evaluation};
use proto::expr::{Expr, Fields};
use proto::model::ids::{NodeId, SliceNo};
use proto::model::index::{IndexInfo, PartitionBy};
use proto::model::topology::PartitionKey;
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::routing::{MutationRouter, Route};
use proto::value::Value;
use proto::value::key::encode_part;
use proto::{Error, Result};

use super::document_keys::{DocumentKeys, OverLimit, document_keys};
use super::left_out::LeftOutCounters;
use crate::source::{Mutation, parse_stored};

/// Builds the key-versions of documents for one node.
pub struct KeyMaker<'r> {
    /// The receiving node.
    pub node: NodeId,
    /// The router that decides which slices an entry belongs to.
    pub router: &'r dyn MutationRouter,
    /// Counts of the documents that were left out because they exceed a limit.
    pub left_out: &'r LeftOutCounters,
    /// The fields that the indexes read.
    pub fields: &'r Arc<Fields>,
    /// The total cost of all evaluations so far.
    pub spent: Cell<u64>,
}

/// A stored document that is parsed only when its value is first needed.
pub struct ParsedOnce<'d> {
    id: &'d str,
    document: &'d [u8],
    fields: &'d Fields,
    parsed: OnceCell<Value>,
}

impl<'d> ParsedOnce<'d> {
    /// Creates an unparsed document; only the fields in `fields` are parsed later.
    pub fn new(id: &'d str, document: &'d [u8], fields: &'d Fields) -> Self {
        Self { id, document, fields, parsed: OnceCell::new() }
    }

    fn value(&self) -> Result<&Value> {
        if self.parsed.get().is_none() {
            // No other thread sets it meanwhile.
            let _first = self.parsed.set(parse_stored(self.id, self.document, self.fields)?);
        }
        let missing = || Error::internal("a document that was parsed is gone");
        self.parsed.get().ok_or_else(missing)
    }
}

/// The entries of a document in one index, and the slice that they belong to. If there are no
/// entries, the slice has no meaning.
struct DocumentState {
    slice: SliceNo,
    keys: DocumentKeys,
}

impl DocumentState {
    fn empty() -> Self {
        Self { slice: SliceNo(0), keys: DocumentKeys::default() }
    }
}

impl KeyMaker<'_> {
    /// Appends the key-versions of a mutation to `out`, for those indexes in which the mutation
    /// concerns the node.
    pub fn mutation(
        &self,
        indexes: &[Arc<IndexInfo>],
        mutation: &Mutation,
        seqno_minus_base: u64,
        out: &mut KeyVersionsWriter,
    ) -> Result<()> {
        let mut states = Vec::with_capacity(indexes.len());
        for index in indexes {
            let doc = match mutation.kind {
                MutationKind::Upsert => Some(mutation),
                MutationKind::Deletion => None,
            };
            let doc = || doc.map(|mutation| mutation.value(self.fields)).transpose();
            if let Some(state) = self.document_state(index, &mutation.id, doc)? {
                states.push((index, state));
            }
        }
        if states.is_empty() {
            return Ok(());
        }
        out.mutation(seqno_minus_base, mutation.kind, &mutation.id, states.len());
        for (index, state) in &states {
            write_state(index, state, out);
        }
        Ok(())
    }

    /// Appends a snapshot's document with its entries to `out`, if it has any on the node.
    pub fn document(
        &self,
        index: &IndexInfo,
        seqno: u64,
        document: &ParsedOnce<'_>,
        out: &mut KeyVersionsWriter,
    ) -> Result<()> {
        let id = document.id;
        if let Some(state) = self.document_state(index, id, || document.value().map(Some))?
            && !state.keys.keys.is_empty()
        {
            out.mutation(seqno, MutationKind::Upsert, id, 1);
            write_state(index, &state, out);
        }
        Ok(())
    }

    /// Returns the entries of a document in an index; `None` if the document does not concern the
    /// node. `doc` returns the document's value, or `None` for a deletion. It is called only when
    /// the value is needed, because most mutations concern other nodes.
    fn document_state<'d>(
        &self,
        index: &IndexInfo,
        id: &str,
        doc: impl FnOnce() -> Result<Option<&'d Value>>,
    ) -> Result<Option<DocumentState>> {
        match &index.spec.partition {
            PartitionBy::DocumentId => {
                match self.router.route(self.node, index, Some(PartitionKey::Id(id))) {
                    Route::Elsewhere => Ok(None),
                    Route::EmptyState => Ok(Some(DocumentState::empty())),
                    Route::Owner(slice) => {
                        let keys = doc()?.map(|doc| self.keys(index, Some(slice), id, doc));
                        Ok(Some(DocumentState { slice, keys: keys.unwrap_or_default() }))
                    }
                }
            }
            partition @ (PartitionBy::Exprs(_) | PartitionBy::Range(_)) => Ok(doc()?.map_or_else(
                || self.needs_empty_documents(index).then(DocumentState::empty),
                |doc| self.partitioned_state(index, partition.exprs(), id, doc),
            )),
        }
    }

    /// Returns the entries of a document in an index that is partitioned by expressions; `None`
    /// if the document does not concern the node.
    fn partitioned_state(
        &self,
        index: &IndexInfo,
        exprs: &[Expr],
        id: &str,
        doc: &Value,
    ) -> Option<DocumentState> {
        let without_entries = || self.needs_empty_documents(index).then(DocumentState::empty);
        let partition = match self.partition_key(exprs, id, doc) {
            Ok(partition) => partition,
            Err(costly) => {
                self.count_unrouted(index, id, doc, &costly.into());
                return without_entries();
            }
        };
        match self.router.route(self.node, index, Some(PartitionKey::Encoded(&partition))) {
            Route::Owner(slice) => {
                let keys = self.keys(index, Some(slice), id, doc);
                match keys.keys.is_empty() {
                    true => without_entries(),
                    false => Some(DocumentState { slice, keys }),
                }
            }
            Route::EmptyState => Some(DocumentState::empty()),
            // The document may have no entry here.
            Route::Elsewhere => without_entries(),
        }
    }

    /// Returns true if the node must also receive documents without entries. That is so if the
    /// index is partitioned by expressions and the node has a slice: an earlier version of the
    /// document may have entries there.
    fn needs_empty_documents(&self, index: &IndexInfo) -> bool {
        self.router.route(self.node, index, None) != Route::Elsewhere
    }

    fn keys(
        &self,
        index: &IndexInfo,
        slice: Option<SliceNo>,
        id: &str,
        doc: &Value,
    ) -> DocumentKeys {
        let cost = CostMeter::for_evaluation();
        let keys = document_keys(&index.spec, id, doc, &cost);
        self.spent.set(self.spent.get() + cost.spent());
        keys.unwrap_or_else(|over| {
            self.count_left_out(index, slice, id, &over);
            DocumentKeys::default()
        })
    }

    /// Encodes the values of the expressions that an index is partitioned by.
    fn partition_key(
        &self,
        exprs: &[Expr],
        id: &str,
        doc: &Value,
    ) -> std::result::Result<Vec<u8>, EvalError> {
        let (cost, scope) = (CostMeter::for_evaluation(), DocumentScope { id, doc });
        let mut out = Vec::new();
        let encoded = exprs.iter().try_for_each(|expr| {
            let value = Evaluation::of_definition(&scope, &cost).eval(expr)?;
            cost.add_value(&value)?;
            encode_part(&value, false, &mut out);
            Ok(())
        });
        self.spent.set(self.spent.get() + cost.spent());
        encoded.map(|()| out)
    }

    /// Counts a document that belongs to no slice, because its partition expressions exceed their
    /// limit. Does nothing if the document has no entry in the index anyway. If the entries
    /// exceed a limit too, that limit is the one that is counted.
    fn count_unrouted(&self, index: &IndexInfo, id: &str, doc: &Value, over: &OverLimit) {
        if self.counts_left_out(index, None) && !self.keys(index, None, id, doc).keys.is_empty() {
            self.count_left_out(index, None, id, over);
        }
    }

    /// Returns true if this node counts the documents that an index leaves out of a slice. Every
    /// copy of the slice leaves them out, and only the first copy counts them. Documents that
    /// belong to no slice are counted with slice 0.
    fn counts_left_out(&self, index: &IndexInfo, slice: Option<SliceNo>) -> bool {
        let copies = index.topology.placement.get(usize::from(slice.unwrap_or(SliceNo(0)).0));
        copies.and_then(|copies| copies.first()) == Some(&self.node)
    }

    /// Counts a document that an index leaves out of a slice, if this node counts for that slice.
    fn count_left_out(
        &self,
        index: &IndexInfo,
        slice: Option<SliceNo>,
        id: &str,
        over: &OverLimit,
    ) {
        if !self.counts_left_out(index, slice) {
            return;
        }
        let count = self.left_out.count(index.local_id(), over.reason);
        // An index may leave out all documents of a bucket: a line for each would fill the log.
        if count.is_power_of_two() {
            let (index, reason) = (&index.spec.name, &over.what);
            tracing::warn!(%index, document = id, count, %reason, "a document is left out of an index");
        }
    }
}

fn write_state(index: &IndexInfo, state: &DocumentState, out: &mut KeyVersionsWriter) {
    out.index(index.local_id(), state.keys.keys.len());
    for key in &state.keys.keys {
        out.entry(state.slice, key, &state.keys.include);
    }
}

#[cfg(test)]
#[path = "key_maker_tests.rs"]
mod tests;
