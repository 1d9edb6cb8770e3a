//! A backfill stream: a consistent snapshot of a bucket as key-versions of one index, for one node.
//!
//! The snapshot is taken together with the bucket's durable cut, under the bucket's gate, so that it holds exactly
//! what the cut covers. The index joined the node's maintenance stream before the backfill was requested, so that
//! stream carries everything newer than the cut. Nothing is lost between the two. A mutation in both is the same or,
//! by its seqno, older.
//!
//! Documents without an entry on the node are omitted, because a slice that is being built has nothing of them to
//! remove. The snapshot is read in chunks, off the async threads. The next chunk waits until the reader has taken
//! this one, so memory is bounded whatever the bucket's size. Messages are limited by their content, because an index
//! may have many entries for a small document.

use std::sync::Arc;

use proto::Result;
use proto::flow::ByteSender;
use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::ids::{NodeId, vbucket_of};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{BackfillMessage, KeyVersionsWriter};

use super::context::{MESSAGE_BYTES, MESSAGE_COST, StreamContext};
use crate::keys::KeyMaker;
use crate::source::bucket::Bucket;
use crate::source::{DocumentSnapshot, StoredDocument};

/// The size of one read: a few milliseconds of work off the async threads.
const CHUNK_BYTES: usize = 512 << 10;

/// One backfill.
pub struct Backfill {
    /// The context of all streams.
    pub context: Arc<StreamContext>,
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The index.
    pub index: Arc<IndexInfo>,
    /// The receiving node.
    pub node: NodeId,
    /// The position of the snapshot in the bucket's history.
    pub cut: Cut,
    /// The requested vbuckets.
    pub vbuckets: VbucketSet,
}

/// The unsent rest of the snapshot.
struct BackfillCursor {
    snapshot: Box<dyn DocumentSnapshot>,
    /// Documents that were read and are not in a message yet.
    read: std::vec::IntoIter<StoredDocument>,
    /// Documents in messages, or without entries for the node.
    done: u64,
}

impl Backfill {
    /// Sends the whole snapshot. Cancelling ends the stream without `End`; its reader starts again.
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
        let of = snapshot.documents_about();
        let mut next = Some(BackfillCursor { snapshot, read: Vec::new().into_iter(), done: 0 });
        while let Some(mut rest) = next.take() {
            let chunk = Arc::clone(&this);
            let env = &this.context.env;
            let (rest, packed) = env
                .blocking(move || {
                    let packed = chunk.next_chunk(&mut rest);
                    (rest, packed)
                })
                .await;
            let (message, progress) = match packed {
                Ok(Some(packed)) => {
                    let progress = Ok(BackfillMessage::Progress { read: rest.done, of });
                    next = Some(rest);
                    // A chunk without entries for the node needs no message of its own.
                    let documents = Some(packed).filter(|packed| !packed.is_empty());
                    (documents.map(|packed| Ok(BackfillMessage::Documents(packed))), Some(progress))
                }
                Ok(None) => (Some(Ok(BackfillMessage::End)), None),
                Err(error) => (Some(Err(error)), None),
            };
            for message in message.into_iter().chain(progress) {
                let bytes = message.as_ref().map_or(0, BackfillMessage::bytes);
                if out.send(message, bytes).await.is_err() {
                    return;
                }
            }
        }
    }

    /// The next documents, packed; `None` at the end.
    fn next_chunk(&self, rest: &mut BackfillCursor) -> Result<Option<bytes::Bytes>> {
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
        let maker = KeyMaker {
            node: self.node,
            router: &*context.router,
            left_out: &context.left_out,
            spent: Default::default(),
        };
        let mut out = KeyVersionsWriter::default();
        while out.len() < MESSAGE_BYTES
            && maker.spent.get() < MESSAGE_COST
            && let Some(stored) = rest.read.next()
        {
            rest.done += 1;
            if !self.vbuckets.contains(vbucket_of(&stored.id, self.bucket.info.vbuckets)) {
                continue;
            }
            let place = (stored.id.as_str(), stored.seqno.0);
            maker.document(&self.index, place, &stored.document, &mut out)?;
        }
        Ok(Some(out.finish()))
    }
}
