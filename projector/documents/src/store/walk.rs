//! A walk through the documents of a bucket, as the contract of stores has it.

use proto::Result;

use crate::document_store::{DocumentSnapshot, StoredDocument};
use crate::table::DocumentWalk;

/// All documents of a bucket at one moment.
pub struct StoreWalk(pub DocumentWalk);

impl DocumentSnapshot for StoreWalk {
    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>> {
        let chunk = self.0.next_chunk(bytes)?;
        let stored = chunk.iter().map(|walked| StoredDocument {
            id: walked.id.to_owned(),
            seqno: walked.seqno,
            document: chunk.shared(&walked),
        });
        Ok(stored.collect())
    }

    fn documents_about(&self) -> u64 {
        self.0.documents_about()
    }
}
