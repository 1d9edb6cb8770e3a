//! Documents by id as rows of a result.
//!
//! Documents are read in one call, so that a statement reads all of them in one state. Two cases
//! need several calls, each of which reads the newest state: more than [`DOCUMENTS_AT_ONCE`] ids,
//! and documents that are too long for one answer. In a transaction all calls read the
//! transaction's epoch.

use std::collections::VecDeque;

use bytes::Bytes;
use proto::{Error, ErrorCode, Result};

use crate::access::{Access, TransactionView};
use crate::rows::value::Datum;
use crate::sql::plan::{DocumentColumn, DocumentPlan};

/// The maximum number of ids in one call; with the longest ids the request has 4 MiB.
const DOCUMENTS_AT_ONCE: usize = 16_384;

/// The rows of a SELECT of documents by id.
pub(super) struct Documents {
    access: Access,
    /// The plan, which contains the ids that are still to be read, in reverse order.
    plan: DocumentPlan,
    /// The view of the transaction in which the statement runs.
    view: Option<TransactionView>,
    found: VecDeque<(String, Bytes)>,
    /// The number of ids in one call.
    at_once: usize,
}

impl Documents {
    pub(super) fn new(
        access: Access,
        mut plan: DocumentPlan,
        view: Option<TransactionView>,
    ) -> Self {
        plan.ids.reverse();
        Self { access, plan, view, found: VecDeque::new(), at_once: DOCUMENTS_AT_ONCE }
    }

    /// Reads further documents; returns false at the end.
    pub(super) async fn fetch(&mut self) -> Result<bool> {
        let plan = &mut self.plan;
        if plan.ids.is_empty() || plan.limit == Some(0) {
            return Ok(false);
        }
        let from = plan.ids.len().saturating_sub(self.at_once);
        let ids: Vec<String> = plan.ids[from..].iter().rev().cloned().collect();
        let view = self.view.unwrap_or_default();
        let documents = match self.access.get(&plan.bucket, ids.clone(), view).await {
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

    /// Returns the next row of the documents that were read; `None` if there is none.
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
