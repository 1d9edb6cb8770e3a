//! A backfill stream: a consistent snapshot of a bucket as key-versions of one index, for one node.
//!
//! The snapshot is taken together with the bucket's durable cut, behind the writer's gate, so that it
//! holds exactly what the cut covers. The index joined the node's maintenance stream before it asked
//! for the backfill, so whatever is newer than the cut comes by that stream: nothing is lost between
//! the two, and what comes by both is the same or, by its seqno, older.
//!
//! Documents without an entry on the node are left out: a slice that is being built has nothing of
//! them to forget. The snapshot is read in chunks, off the async threads, and the next chunk waits for
//! the reader to take this one, so memory is bounded whatever the bucket's size; messages are cut by what
//! they hold, since an index may make much of a small document.

use std::sync::Arc;

use proto::Result;
use proto::flow::ByteSender;
use proto::model::cut::Cut;
use proto::model::homes::VbucketSet;
use proto::model::ids::{NodeId, vbucket_of};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{BackfillMessage, KeyVersionsWriter};

use super::context::{MESSAGE_BYTES, StreamContext};
use crate::keys::KeyMaker;
use crate::source::bucket::Bucket;
use crate::source::{DocumentSnapshot, StoredDocument};

/// Documents read at once: a few milliseconds of work off the async threads.
const CHUNK_BYTES: usize = 512 << 10;

/// One backfill.
pub struct Backfill {
    /// What all streams share.
    pub context: Arc<StreamContext>,
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The index.
    pub index: Arc<IndexInfo>,
    /// Who gets it.
    pub node: NodeId,
    /// Where the snapshot is in the bucket's history.
    pub cut: Cut,
    /// What of it is wanted.
    pub vbuckets: VbucketSet,
}

/// What is still to be sent.
struct Rest {
    snapshot: Box<dyn DocumentSnapshot>,
    /// Documents that were read and are in no message yet.
    read: std::vec::IntoIter<StoredDocument>,
}

impl Backfill {
    /// Sends all of the snapshot. Cancelled: the stream ends without `End`; its reader begins anew.
    pub async fn run(
        self,
        snapshot: Box<dyn DocumentSnapshot>,
        out: ByteSender<Result<BackfillMessage>>,
    ) {
        let begin = BackfillMessage::Begin { cut: self.cut.clone() };
        let bytes = begin.bytes();
        if out.send(Ok(begin), bytes).await.is_err() {
            return;
        }
        let this = Arc::new(self);
        let mut next = Some(Rest { snapshot, read: Vec::new().into_iter() });
        while let Some(mut rest) = next.take() {
            let chunk = Arc::clone(&this);
            let env = &this.context.env;
            let (rest, packed) = env
                .blocking(move || {
                    let packed = chunk.next_chunk(&mut rest);
                    (rest, packed)
                })
                .await;
            let message = match packed {
                Ok(Some(packed)) => {
                    next = Some(rest);
                    // A chunk without entries for the node needs no message.
                    if packed.is_empty() {
                        continue;
                    }
                    Ok(BackfillMessage::Documents(packed))
                }
                Ok(None) => Ok(BackfillMessage::End),
                Err(error) => Err(error),
            };
            let bytes = message.as_ref().map_or(0, BackfillMessage::bytes);
            if out.send(message, bytes).await.is_err() {
                return;
            }
        }
    }

    /// The next documents, packed; None behind the last.
    fn next_chunk(&self, rest: &mut Rest) -> Result<Option<bytes::Bytes>> {
        if self.bucket.is_removed() {
            return Err(self.bucket.removed_error());
        }
        if rest.read.as_slice().is_empty() {
            rest.read = rest.snapshot.next_chunk(CHUNK_BYTES)?.into_iter();
        }
        if rest.read.as_slice().is_empty() {
            return Ok(None);
        }
        let context = &self.context;
        let maker =
            KeyMaker { node: self.node, router: &*context.router, left_out: &context.left_out };
        let mut out = KeyVersionsWriter::default();
        while out.len() < MESSAGE_BYTES
            && let Some(stored) = rest.read.next()
        {
            if !self.vbuckets.contains(vbucket_of(&stored.id, self.bucket.info.vbuckets)) {
                continue;
            }
            let place = (stored.id.as_str(), stored.seqno.0);
            maker.document(&self.index, place, &stored.document, &mut out)?;
        }
        Ok(Some(out.finish()))
    }
}
