//! Reads documents by id as the rows of a result.
//!
//! One call reads all documents of a statement, so that all are read at the same moment. Two
//! cases need several calls, each of which reads the newest documents: more than
//! [`DOCUMENTS_AT_ONCE`] ids, and documents that are too long for one answer. In a transaction
//! all calls read the transaction's epoch.

use std::collections::VecDeque;

use bytes::Bytes;
use proto::{Error, ErrorCode, Result};

use crate::access::{Access, TransactionView};
use crate::rows::value::Datum;
use crate::sql::plan::{DocumentColumn, DocumentPlan};

/// The maximum number of ids in one call. With ids of the maximum length, the request has 4 MiB.
const DOCUMENTS_AT_ONCE: usize = 16_384;

/// The rows of a SELECT of documents by id.
pub(super) struct Documents {
    access: Access,
    /// The plan of the SELECT. It contains the ids that are not read yet, in reverse order.
    plan: DocumentPlan,
    /// The view that the transaction of the statement has of the bucket; `None` outside of a transaction.
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

    /// Reads further documents. Returns false if there are none.
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

    /// Returns the row of the next document that was read; `None` if all were returned.
    pub(super) fn row(&mut self) -> Result<Option<Vec<Datum>>> {
        let next = self.found.pop_front();
        next.map(|(id, document)| document_row(&self.plan.cells, id, &document)).transpose()
    }
}

/// Returns the row of a document, with the columns that the plan specifies.
fn document_row(cells: &[DocumentColumn], id: String, document: &[u8]) -> Result<Vec<Datum>> {
    let text = std::str::from_utf8(document)
        .map_err(|_| Error::new(ErrorCode::Corrupt, format!("document {id:?} is not UTF-8")))?;
    let cell = |cell: &DocumentColumn| match cell {
        DocumentColumn::Id => Datum::text(&*id),
        DocumentColumn::Document => Datum::text(text),
    };
    Ok(cells.iter().map(cell).collect())
}
