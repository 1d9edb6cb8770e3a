//! A snapshot of the documents of a bucket in memory.

use std::ops::Bound;
use std::sync::Arc;

use proto::Result;

use super::contents::Contents;
use crate::document_store::{DocumentSnapshot, StoredDocument};
use crate::mutation::Mutation;

/// Returns the range of ids that follow an id; `None` selects all ids.
fn ids_after(after: Option<&str>) -> (Bound<&str>, Bound<&str>) {
    (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

/// The documents of a bucket as of one moment, and their number.
#[derive(Clone)]
pub(super) struct MemorySnapshot(std::vec::IntoIter<Arc<Mutation>>, u64);

impl MemorySnapshot {
    /// Creates a snapshot of the present documents whose ids follow `after`.
    pub fn of(contents: &Contents, after: Option<&str>) -> Self {
        let behind = contents.documents.range::<str, _>(ids_after(after));
        let documents: Vec<_> = behind.map(|(_, document)| Arc::clone(document)).collect();
        let count = documents.len() as u64;
        Self(documents.into_iter(), count)
    }
}

impl DocumentSnapshot for MemorySnapshot {
    fn fork(&self) -> Box<dyn DocumentSnapshot> {
        Box::new(self.clone())
    }

    fn documents_about(&self) -> u64 {
        self.1
    }

    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>> {
        let (mut chunk, mut size) = (Vec::new(), 0);
        while size < bytes {
            let Some(mutation) = self.0.next() else { break };
            size += mutation.id.len() + mutation.document.len() + 1;
            chunk.push(StoredDocument {
                id: mutation.id.to_string(),
                seqno: mutation.seqno,
                document: mutation.document.clone(),
            });
        }
        Ok(chunk)
    }
}
