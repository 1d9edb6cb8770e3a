//! Documents by id as rows of a result.
//!
//! Documents are read in one call, so that a statement sees all of them at one moment. There are two exceptions with several calls, each at
//! a different moment: more than [`DOCUMENTS_AT_ONCE`] ids, and documents that are too long for one answer. In a transaction all calls read
//! at its moment.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use proto::{Error, ErrorCode, Result};

use crate::rows::value::Datum;
use crate::sql::backend::{Backend, TransactionView};
use crate::sql::plan::{DocumentColumn, DocumentPlan};

/// Maximum of ids in one call; with the longest ids the request has 4 MiB.
const DOCUMENTS_AT_ONCE: usize = 16_384;

/// Documents by id.
pub(super) struct Documents {
    backend: Arc<dyn Backend>,
    /// The plan, whose ids are the remaining ones in reverse order.
    plan: DocumentPlan,
    /// The view of the transaction in which the statement runs.
    view: Option<TransactionView>,
    found: VecDeque<(String, Bytes)>,
    /// Number of ids in one call.
    at_once: usize,
}

impl Documents {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        mut plan: DocumentPlan,
        view: Option<TransactionView>,
    ) -> Self {
        plan.ids.reverse();
        Self { backend, plan, view, found: VecDeque::new(), at_once: DOCUMENTS_AT_ONCE }
    }

    /// Reads further documents; false at the end.
    pub(super) async fn fetch(&mut self) -> Result<bool> {
        let plan = &mut self.plan;
        if plan.ids.is_empty() || plan.limit == Some(0) {
            return Ok(false);
        }
        let from = plan.ids.len().saturating_sub(self.at_once);
        let ids: Vec<String> = plan.ids[from..].iter().rev().cloned().collect();
        let read = match self.view {
            Some(view) => self.backend.get_in(&plan.bucket, ids.clone(), view).await,
            None => self.backend.get(&plan.bucket, ids.clone()).await,
        };
        let documents = match read {
            Err(error) if error.code == ErrorCode::OverLimit && ids.len() > 1 => {
                self.at_once = ids.len().div_ceil(2);
                return Ok(true);
            }
            read => read?,
        };
        plan.ids.truncate(from);
        for (id, document) in ids.into_iter().zip(documents) {
            let Some(document) = document else { continue };
            if plan.offset > 0 {
                plan.offset -= 1;
            } else if plan.limit != Some(0) {
                plan.limit = plan.limit.map(|limit| limit - 1);
                self.found.push_back((id, document));
            }
        }
        Ok(true)
    }

    /// Returns the next row of the documents read.
    pub(super) fn row(&mut self) -> Result<Option<Vec<Datum>>> {
        let next = self.found.pop_front();
        next.map(|(id, document)| document_row(&self.plan.cells, id, &document)).transpose()
    }
}

fn document_row(cells: &[DocumentColumn], id: String, document: &[u8]) -> Result<Vec<Datum>> {
    let text = std::str::from_utf8(document)
        .map_err(|_| Error::new(ErrorCode::Corrupt, format!("document {id:?} is not UTF-8")))?;
    let cell = |cell: &DocumentColumn| match cell {
        DocumentColumn::Id => Datum::text(&*id),
        DocumentColumn::Document => Datum::text(text),
    };
    Ok(cells.iter().map(cell).collect())
}
