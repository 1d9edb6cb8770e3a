//! Evaluates the documents of a snapshot for several backfills, off the async threads. A document
//! without an entry on a node is not sent to that node: the slice that is being built has no
//! older entries of the document that would have to be removed.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use proto::Result;
use proto::env::Bulk;
use proto::expr::Fields;
use proto::model::assignment::VbucketSet;
use proto::model::ids::{NodeId, vbucket_of};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::KeyVersionsWriter;

use super::context::{MESSAGE_BYTES, MESSAGE_COST, StreamContext};
use crate::keys::{KeyMaker, ParsedOnce};
use crate::source::StoredDocument;

/// The content of a backfill: an index, the node that receives its entries, and the vbuckets of
/// the documents.
pub struct BackfillContent {
    /// The receiving node.
    pub node: NodeId,
    pub index: Arc<IndexInfo>,
    pub vbuckets: VbucketSet,
}

/// Documents of a snapshot, and the backfills for which they are to be evaluated.
pub struct EvaluationInput {
    documents: std::vec::IntoIter<StoredDocument>,
    wanted: Vec<Arc<BackfillContent>>,
    /// The number of vbuckets of the bucket.
    vbuckets: u16,
}

/// The result of evaluating some documents: messages for the backfills.
pub struct EvaluationOutput {
    /// The number of documents that were evaluated.
    pub documents: u64,
    /// The key-versions for each backfill, as an encoded message.
    pub messages: Vec<(Arc<BackfillContent>, Bytes)>,
    /// The documents that were not evaluated because the messages are full; `None` if all were.
    /// An index may have many entries for a small document.
    pub rest: Option<EvaluationInput>,
}

/// An evaluation that runs on another thread.
pub struct EvaluationTask(Pin<Box<dyn Future<Output = Result<EvaluationOutput>> + Send>>);

impl EvaluationTask {
    /// Waits for the result of the evaluation.
    pub async fn finish(self) -> Result<EvaluationOutput> {
        self.0.await
    }
}

impl EvaluationInput {
    /// Creates the input of an evaluation of documents for some backfills. The bucket has
    /// `vbuckets` vbuckets.
    pub fn new(
        documents: Vec<StoredDocument>,
        wanted: Vec<Arc<BackfillContent>>,
        vbuckets: u16,
    ) -> Self {
        Self { documents: documents.into_iter(), wanted, vbuckets }
    }

    /// Returns a copy of the input for only one of its backfills.
    pub fn for_backfill(&self, wanted: &Arc<BackfillContent>) -> Self {
        let documents = self.documents.as_slice().to_vec().into_iter();
        Self { documents, wanted: vec![Arc::clone(wanted)], vbuckets: self.vbuckets }
    }

    /// Begins an evaluation on a thread for bulk work.
    pub fn begin(self, context: &Arc<StreamContext>) -> EvaluationTask {
        let (context, env) = (Arc::clone(context), context.env.clone());
        let work = async move { env.bulk(Bulk::Queued, move || self.evaluate(&context)).await };
        let mut work: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(work);
        // The first poll hands the work to the thread.
        match work.as_mut().now_or_never() {
            Some(done) => EvaluationTask(Box::pin(std::future::ready(done))),
            None => EvaluationTask(work),
        }
    }

    fn evaluate(mut self, context: &StreamContext) -> Result<EvaluationOutput> {
        let mut fields = Fields::default();
        self.wanted.iter().for_each(|wanted| fields.add_all(wanted.index.spec.fields()));
        let fields = Arc::new(fields);
        let makers: Vec<_> = self
            .wanted
            .iter()
            .map(|wanted| KeyMaker {
                node: wanted.node,
                router: &*context.router,
                left_out: &context.left_out,
                fields: &fields,
                spent: Default::default(),
            })
            .collect();
        let mut outs: Vec<KeyVersionsWriter> = makers.iter().map(|_| Default::default()).collect();
        let mut documents = 0;
        let has_room = |outs: &[KeyVersionsWriter]| {
            outs.iter().map(KeyVersionsWriter::len).sum::<usize>() < MESSAGE_BYTES
                && makers.iter().map(|maker| maker.spent.get()).sum::<u64>() < MESSAGE_COST
        };
        while has_room(&outs)
            && let Some(stored) = self.documents.next()
        {
            documents += 1;
            let vbucket = vbucket_of(&stored.id, self.vbuckets);
            let parsed = ParsedOnce::new(&stored.id, &stored.document, &fields);
            for ((wanted, maker), out) in self.wanted.iter().zip(&makers).zip(&mut outs) {
                if wanted.vbuckets.contains(vbucket) {
                    maker.document(&wanted.index, stored.seqno.0, &parsed, out)?;
                }
            }
        }
        drop(makers);
        let packed = outs.into_iter().map(|mut out| out.finish());
        let messages = self.wanted.iter().cloned().zip(packed).collect();
        let rest = (!self.documents.as_slice().is_empty()).then_some(self);
        Ok(EvaluationOutput { documents, messages, rest })
    }
}
