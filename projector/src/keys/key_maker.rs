//! Key-versions of documents for one node.

use std::sync::atomic::{AtomicU64, Ordering};

use proto::Result;
use proto::expr::Expr;
use proto::expr::eval::{DocumentScope, eval};
use proto::model::ids::{NodeId, SliceNo};
use proto::model::index::{IndexInfo, PartitionBy};
use proto::model::topology::PartitionKey;
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::routing::{MutationRouter, Route};
use proto::value::Value;
use proto::value::key::encode_part;

use super::document_keys::{DocumentKeys, document_keys};
use crate::source::{Mutation, parse_stored};

/// Makes key-versions of documents for one node.
pub struct KeyMaker<'r> {
    /// Who gets them.
    pub node: NodeId,
    /// Says which slices they go to.
    pub router: &'r dyn MutationRouter,
    /// Counts documents that were left out because they are over a limit.
    pub left_out: &'r AtomicU64,
}

/// The state of a document in one index, and the slice that it goes to; no slice where it has none.
struct State {
    slice: SliceNo,
    keys: DocumentKeys,
}

impl KeyMaker<'_> {
    /// Appends what a mutation means for the node, if it concerns it.
    pub fn mutation(
        &self,
        indexes: &[std::sync::Arc<IndexInfo>],
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
            let doc = || doc.map(Mutation::value).transpose();
            if let Some(state) = self.state(index, &mutation.id, doc)? {
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

    /// Appends the entries of a document of a snapshot, if it has any on the node.
    pub fn document(
        &self,
        index: &IndexInfo,
        (id, seqno): (&str, u64),
        document: &[u8],
        out: &mut KeyVersionsWriter,
    ) -> Result<()> {
        let parsed = std::cell::OnceCell::new();
        let doc = || match parsed.get() {
            Some(value) => Ok(Some(value)),
            None => {
                let value = parse_stored(id, document)?;
                Ok(Some(parsed.get_or_init(|| value)))
            }
        };
        if let Some(state) = self.state(index, id, doc)?
            && !state.keys.keys.is_empty()
        {
            out.mutation(seqno, MutationKind::Upsert, id, 1);
            write_state(index, &state, out);
        }
        Ok(())
    }

    /// None where the node has nothing to do with the document. The document is only asked for where
    /// it is needed, since most mutations concern other nodes; None stands for a deletion.
    fn state<'d>(
        &self,
        index: &IndexInfo,
        id: &str,
        doc: impl FnOnce() -> Result<Option<&'d Value>>,
    ) -> Result<Option<State>> {
        let nothing = || State { slice: SliceNo(0), keys: DocumentKeys::default() };
        match &index.spec.partition {
            PartitionBy::DocumentId => {
                match self.router.route(self.node, index, Some(PartitionKey::Id(id))) {
                    Route::Elsewhere => Ok(None),
                    Route::EmptyState => Ok(Some(nothing())),
                    Route::Owner(slice) => {
                        let keys = doc()?.map(|doc| self.keys(index, id, doc));
                        Ok(Some(State { slice, keys: keys.unwrap_or_default() }))
                    }
                }
            }
            PartitionBy::Exprs(exprs) => {
                let Some(doc) = doc()? else {
                    return Ok(self.without_entries(index).then(nothing));
                };
                let keys = self.keys(index, id, doc);
                if keys.keys.is_empty() {
                    return Ok(self.without_entries(index).then(nothing));
                }
                let partition = partition_key(exprs, &DocumentScope { id, doc });
                match self.router.route(self.node, index, Some(PartitionKey::Encoded(&partition))) {
                    Route::Elsewhere => Ok(None),
                    Route::EmptyState => Ok(Some(nothing())),
                    Route::Owner(slice) => Ok(Some(State { slice, keys })),
                }
            }
        }
    }

    /// Must the node hear of a document that has no entry in an index partitioned by expressions?
    fn without_entries(&self, index: &IndexInfo) -> bool {
        self.router.route(self.node, index, None) != Route::Elsewhere
    }

    fn keys(&self, index: &IndexInfo, id: &str, doc: &Value) -> DocumentKeys {
        document_keys(&index.spec, id, doc).unwrap_or_else(|error| {
            let count = self.left_out.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(index = %index.spec.name, document = id, count, %error, "left out");
            DocumentKeys::default()
        })
    }
}

fn write_state(index: &IndexInfo, state: &State, out: &mut KeyVersionsWriter) {
    out.index(index.id, index.generation, state.keys.keys.len());
    for key in &state.keys.keys {
        out.entry(state.slice, key, &state.keys.include);
    }
}

/// The encoded values of the expressions that an index is partitioned by.
fn partition_key(exprs: &[Expr], scope: &DocumentScope<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for expr in exprs {
        encode_part(&eval(expr, scope), false, &mut out);
    }
    out
}
