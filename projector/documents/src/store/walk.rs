//! A walk over the documents of a bucket, as an implementation of [`DocumentSnapshot`].

use std::sync::Arc;

use proto::{Error, Result};

use super::bucket_store::BucketStore;
use crate::document_store::{DocumentSnapshot, StoredDocument};
use crate::table::{DocumentWalk, TableMoment};

/// All documents of a bucket as of one moment. The moment is fixed quickly, because the bucket's
/// writer waits for that. The walk over the table begins only with the first chunk.
#[derive(Clone)]
pub struct StoreWalk {
    bucket: Arc<BucketStore>,
    after: Option<String>,
    documents_about: u64,
    /// The contents of the table at the moment of the snapshot; `None` once the first chunk was
    /// requested.
    moment: Option<TableMoment>,
    /// The walk, or the error with which it could not begin; meaningful once the first chunk was
    /// requested.
    walk: Result<DocumentWalk>,
}

impl StoreWalk {
    /// Creates a snapshot of the present documents whose ids follow `after`.
    pub fn new(bucket: Arc<BucketStore>, after: Option<&str>) -> Self {
        let moment = bucket.table.fix_moment();
        Self {
            after: after.map(str::to_owned),
            documents_about: moment.documents_about(),
            moment: Some(moment),
            walk: Err(Error::internal("the walk has not begun")),
            bucket,
        }
    }
}

impl DocumentSnapshot for StoreWalk {
    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>> {
        if let Some(moment) = self.moment.take() {
            self.walk = self.bucket.table.walk_at(moment, self.after.as_deref(), None);
        }
        let chunk = self.walk.as_mut().map_err(|error| error.clone())?.next_chunk(bytes)?;
        let stored = chunk.iter().map(|walked| StoredDocument {
            id: walked.id.to_owned(),
            seqno: walked.seqno,
            document: chunk.shared(&walked),
        });
        Ok(stored.collect())
    }

    fn documents_about(&self) -> u64 {
        self.documents_about
    }

    fn fork(&self) -> Box<dyn DocumentSnapshot> {
        Box::new(self.clone())
    }
}
