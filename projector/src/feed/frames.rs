//! Packs mutations into frames. A frame contains the key-versions of a range of one vbucket's
//! seqnos for one node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::expr::Fields;
use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::history::FailoverLogs;
use proto::model::ids::{NodeId, Seqno, VbucketId};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{Frame, KeyVersionsWriter};
use proto::{Error, Result};

use super::context::{MESSAGE_BYTES, StreamContext};
use crate::keys::KeyMaker;
use crate::source::Mutation;

/// The settings with which a stream packs mutations into frames.
pub(super) struct Packing {
    pub context: Arc<StreamContext>,
    pub node: NodeId,
    pub indexes: Vec<Arc<IndexInfo>>,
    pub fields: Arc<Fields>,
    pub logs: Arc<FailoverLogs>,
    /// Mutations before which the stream must stop, because they are the first ones of large
    /// commits.
    pub stops: BTreeSet<(VbucketId, Seqno)>,
}

impl Packing {
    /// Packs the next mutations of a batch into frames. Returns the frames and the cost of the
    /// index expressions.
    pub fn pack(
        &self,
        batch: &mut std::vec::IntoIter<Arc<Mutation>>,
        place: (&Cut, &VbucketSet),
        cost_max: u64,
    ) -> (Result<Vec<Frame>>, u64) {
        let maker = KeyMaker {
            node: self.node,
            router: &*self.context.router,
            left_out: &self.context.left_out,
            fields: &self.fields,
            spent: Default::default(),
        };
        let frames = self.frames(&maker, batch, place, cost_max);
        (frames, maker.spent.get())
    }
    /// Packs mutations of a batch into one frame per vbucket, from the stream's position on.
    /// Stops when a message is full, or when the index expressions have cost `cost_max`: an index
    /// may have many entries for a small document, and a costly expression.
    fn frames(
        &self,
        maker: &KeyMaker<'_>,
        batch: &mut std::vec::IntoIter<Arc<Mutation>>,
        (at, vbuckets): (&Cut, &VbucketSet),
        cost_max: u64,
    ) -> Result<Vec<Frame>> {
        let mut open: BTreeMap<VbucketId, (Seqno, Seqno, KeyVersionsWriter)> = BTreeMap::new();
        let mut bytes = 0;
        while bytes < MESSAGE_BYTES
            && maker.spent.get() < cost_max
            && let Some(mutation) = self.next_mutation(batch, at)
        {
            let from = at.get(mutation.vbucket).seqno;
            // The head also has mutations of vbuckets that were owned before, or that the stream no longer carries.
            if !vbuckets.contains(mutation.vbucket) || mutation.seqno <= from {
                continue;
            }
            let (from, to, writer) =
                open.entry(mutation.vbucket).or_insert((from, from, KeyVersionsWriter::default()));
            if mutation.seqno.0 != to.0 + 1 {
                let what =
                    format!("another projector owned vbucket {} meanwhile", mutation.vbucket);
                return Err(Error::unavailable(what));
            }
            *to = mutation.seqno;
            let before = writer.len();
            maker.mutation(&self.indexes, &mutation, mutation.seqno.0 - from.0, writer)?;
            bytes += writer.len() - before;
        }
        let frames = open.into_iter().map(|(vbucket, (from, to, mut writer))| {
            let vbuuid = self.logs.branch_of(vbucket, to);
            Frame { vbucket, vbuuid, from, to, body: writer.finish() }
        });
        Ok(frames.collect())
    }

    /// Takes the next mutation from the batch; `None` if the stream must stop before it.
    fn next_mutation(
        &self,
        batch: &mut std::vec::IntoIter<Arc<Mutation>>,
        at: &Cut,
    ) -> Option<Arc<Mutation>> {
        let next = batch.as_slice().first().filter(|_| !self.stops.is_empty());
        let is_stop = next.is_some_and(|next| {
            let is_ahead = next.seqno > at.get(next.vbucket).seqno;
            is_ahead && self.stops.contains(&(next.vbucket, next.seqno))
        });
        if is_stop { None } else { batch.next() }
    }
}
