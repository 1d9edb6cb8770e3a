//! [`Source`]: the projectors of a bucket with the interface of one projector.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::{join_all, try_join_all};

use super::stream;
use crate::error::{Error, ErrorCode, Result};
use crate::model::assignment::{VbucketAssignment, VbucketSet};
use crate::model::bucket::BucketInfo;
use crate::model::cut::Cut;
use crate::model::history::{Branches, FailoverLogs, SourceHistory, SourcePlace};
use crate::model::ids::{
    BucketId, NodeId, ProducerTransactionId, TransactionId, VbucketId, vbucket_of,
};
use crate::model::node::NodeInfo;
use crate::rpc::api::{
    CopyAnswer, CopyRequest, Directory, Documents, DocumentsRequest, HandOverPiece,
    HandOverRequest, ProjectorApi, PushReply, PushRequest, PushedCommitRequest, PushedStep,
    ResultStream, TransactionPush, TransactionPushed, WriteReply, WriteRequest,
};
use crate::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};

/// Returns a client for a bucket: of its only projector, or of all its projectors together.
/// `node` returns the record of a projector.
pub fn source_of(
    directory: &dyn Directory,
    bucket: &BucketInfo,
    node: impl Fn(NodeId) -> Option<Arc<NodeInfo>>,
) -> Result<Arc<dyn ProjectorApi>> {
    let find = |id: NodeId| {
        let what = || format!("projector {id} of bucket {:?} is not known", bucket.name);
        Ok(directory.projector(&*node(id).ok_or_else(|| Error::unavailable(what()))?))
    };
    let assignment = bucket.assignment.projectors();
    if let (false, [one]) = (bucket.source.can_span_projectors(), &assignment[..]) {
        return find(*one);
    }
    let parts = assignment.iter().map(|id| Ok((*id, find(*id)?))).collect::<Result<_>>()?;
    // A joining projector may have left again; nothing depends on it yet.
    let coming = bucket.assignment.joining();
    let coming = coming.iter().filter_map(|id| Some((*id, find(*id).ok()?))).collect();
    let (vbuckets, assignment) = (bucket.vbuckets, Arc::clone(&bucket.assignment));
    Ok(Arc::new(Source { vbuckets, assignment, parts, coming }))
}

/// The projectors of a bucket with the interface of one projector.
pub struct Source {
    vbuckets: u16,
    assignment: Arc<VbucketAssignment>,
    /// The projectors that own vbuckets, ascending.
    parts: BTreeMap<NodeId, Arc<dyn ProjectorApi>>,
    /// The projectors that own no vbucket yet, but are about to receive one.
    coming: Vec<(NodeId, Arc<dyn ProjectorApi>)>,
}

impl Source {
    fn owner(&self, vbucket: VbucketId) -> Result<NodeId> {
        self.assignment.owner(vbucket).ok_or_else(|| {
            let what = format!("vbucket {vbucket}: the bucket has {}", self.vbuckets);
            Error::new(ErrorCode::InvalidParameter, what)
        })
    }

    /// Returns the vbuckets that a projector owns. Returns an error if `told`, the vbuckets that
    /// its answer covers, lacks one of them.
    fn check(&self, projector: NodeId, told: &VbucketSet) -> Result<VbucketSet> {
        let wanted = self.assignment.owned_by(projector);
        if let Some(vbucket) = wanted.iter().find(|vbucket| !told.contains(*vbucket)) {
            let what = format!("projector {projector} does not keep vbucket {vbucket} (any more)");
            return Err(Error::unavailable(what));
        }
        Ok(wanted)
    }

    /// Reads documents from the owners of their vbuckets. `read` reads documents of one
    /// projector.
    async fn read_from_owners<'s, F: Future<Output = Result<Documents>>>(
        &'s self,
        ids: Vec<String>,
        read: impl Fn(&'s Arc<dyn ProjectorApi>, Vec<String>) -> F,
    ) -> Result<Documents> {
        let mut of_each: BTreeMap<NodeId, (Vec<usize>, Vec<String>)> = BTreeMap::new();
        let asked = ids.len();
        for (n, id) in ids.into_iter().enumerate() {
            let (places, wanted) =
                of_each.entry(self.owner(vbucket_of(&id, self.vbuckets))?).or_default();
            places.push(n);
            wanted.push(id);
        }
        let found = of_each.into_iter().map(|(projector, (places, wanted))| {
            let read = read(&self.parts[&projector], wanted);
            async move { Ok::<_, Error>(places.into_iter().zip(read.await?)) }
        });
        let mut documents = vec![None; asked];
        for (n, document) in try_join_all(found).await?.into_iter().flatten() {
            documents[n] = document;
        }
        Ok(documents)
    }
}

/// Combines the answers of several projectors to parts of one request. A projector that no longer
/// owns its vbuckets has accepted nothing and is skipped. Returns an error if all are skipped.
fn combine_replies<T: Ord>(replies: impl Iterator<Item = Result<Vec<T>>>) -> Result<Vec<T>> {
    let (mut all, mut not_owner) = (Vec::new(), None);
    for reply in replies {
        match reply {
            Err(error) if error.code == ErrorCode::NotOwner => not_owner = Some(error),
            reply => all.extend(reply?),
        }
    }
    all.sort();
    match not_owner.filter(|_| all.is_empty()) {
        Some(error) => Err(error),
        None => Ok(all),
    }
}

#[async_trait]
impl ProjectorApi for Source {
    async fn write(&self, request: WriteRequest) -> Result<WriteReply> {
        let what = format!("bucket {} is pushed and takes no documents", request.bucket);
        Err(Error::new(ErrorCode::Unsupported, what)
            .with_hint("push mutations with their positions"))
    }

    /// Reads documents by id. The documents of one projector are read as of one moment.
    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Documents> {
        self.read_from_owners(ids, |part, ids| part.get(bucket, ids)).await
    }

    /// Reads documents, all as of the snapshot if the request names one.
    async fn get_for_transaction(&self, request: DocumentsRequest) -> Result<Documents> {
        let DocumentsRequest { bucket, ids, snapshot, own } = request;
        let read = |part: &'_ Arc<dyn ProjectorApi>, ids| {
            let part = Arc::clone(part);
            let request = DocumentsRequest { bucket, ids, snapshot, own };
            async move { part.get_for_transaction(request).await }
        };
        self.read_from_owners(ids, read).await
    }

    /// Sends each projector the mutations of the vbuckets that it owns. The answer lists the
    /// accepted ones. After an error some mutations may be stored, as with a push to one
    /// projector.
    async fn push(&self, request: PushRequest) -> Result<PushReply> {
        let mut of_each: BTreeMap<NodeId, PushRequest> = BTreeMap::new();
        let PushRequest { bucket, branches, mutations } = request;
        let empty = || PushRequest { bucket, branches: Vec::new(), mutations: Vec::new() };
        for branch in branches {
            of_each.entry(self.owner(branch.0)?).or_insert_with(empty).branches.push(branch);
        }
        for mutation in mutations {
            let part = of_each.entry(self.owner(mutation.vbucket)?).or_insert_with(empty);
            part.mutations.push(mutation);
        }
        let pushed = of_each.into_iter().map(|(projector, part)| self.parts[&projector].push(part));
        let replies = join_all(pushed).await.into_iter();
        let durable = combine_replies(replies.map(|reply| Ok(reply?.durable)))?;
        Ok(PushReply { durable })
    }

    /// Sends each projector the mutations of the vbuckets that it owns, like [`Self::push`].
    async fn push_for_transaction(&self, request: TransactionPush) -> Result<TransactionPushed> {
        let mut of_each: BTreeMap<NodeId, TransactionPush> = BTreeMap::new();
        let TransactionPush { bucket, transaction, owner, mutations } = request;
        for mutation in mutations {
            let (owner, mutations) = (owner.clone(), Vec::new());
            let part = of_each.entry(self.owner(mutation.vbucket)?).or_insert(TransactionPush {
                bucket,
                transaction,
                owner,
                mutations,
            });
            part.mutations.push(mutation);
        }
        let pushed = of_each
            .into_iter()
            .map(|(projector, part)| self.parts[&projector].push_for_transaction(part));
        let replies = join_all(pushed).await.into_iter();
        let kept = combine_replies(replies.map(|reply| Ok(reply?.kept)))?;
        Ok(TransactionPushed { kept })
    }

    /// Makes each projector commit a transaction's mutations of the vbuckets that it owns. If
    /// there are several projectors, all of them first check that they have these mutations, so
    /// that missing ones are reported before any projector commits. After an error some
    /// projectors may have committed.
    async fn commit_pushed(&self, request: PushedCommitRequest) -> Result<PushReply> {
        let mut of_each: BTreeMap<NodeId, VbucketSet> = BTreeMap::new();
        for vbucket in request.wanted.iter() {
            of_each.entry(self.owner(vbucket)?).or_default().insert(vbucket);
        }
        let ask = async |step| {
            let asked = of_each.iter().map(|(projector, wanted)| {
                let wanted = wanted.clone();
                let request = PushedCommitRequest { wanted, step, ..request.clone() };
                self.parts[projector].commit_pushed(request)
            });
            join_all(asked).await.into_iter()
        };
        if of_each.len() > 1 && request.step == PushedStep::Commit {
            ask(PushedStep::Check).await.try_for_each(|reply| reply.map(drop))?;
        }
        let replies = ask(request.step).await;
        let durable = combine_replies(replies.map(|reply| Ok(reply?.durable)))?;
        Ok(PushReply { durable })
    }

    async fn abort_pushed(
        &self,
        bucket: BucketId,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        let parts = self.parts.values().map(|part| part.abort_pushed(bucket, transaction));
        join_all(parts).await.into_iter().collect()
    }

    async fn abort(&self, bucket: BucketId, transaction: TransactionId) -> Result<()> {
        let parts = self.parts.values().map(|part| part.abort(bucket, transaction));
        join_all(parts).await.into_iter().collect()
    }

    async fn place(&self, bucket: BucketId) -> Result<SourcePlace> {
        let asked = self.parts.iter().map(|(projector, part)| async move {
            let place = part.place(bucket).await?;
            let told = self.check(*projector, &place.kept)?;
            match told == place.kept {
                true => Ok(place),
                // The projector does not know yet that it lost a vbucket, so its fingerprint includes too much.
                false => Err(Error::unavailable("a vbucket is being handed over")),
            }
        });
        let (mut durable, mut history) = (Cut::zero(self.vbuckets), 0_u64);
        for place in try_join_all(asked).await? {
            durable = durable.with_vbuckets_of(&place.kept, &place.durable);
            history = history.wrapping_add(place.history);
        }
        Ok(SourcePlace { durable, history, kept: VbucketSet::all(self.vbuckets) })
    }

    async fn history(&self, bucket: BucketId) -> Result<SourceHistory> {
        let asked = self.parts.iter().map(|(projector, part)| async move {
            let history = part.history(bucket).await?;
            Ok::<_, Error>((self.check(*projector, &history.kept)?, history))
        });
        let mut durable = Cut::zero(self.vbuckets);
        let mut logs = vec![Branches::new(); usize::from(self.vbuckets)];
        for (kept, history) in try_join_all(asked).await? {
            durable = durable.with_vbuckets_of(&kept, &history.durable);
            for vbucket in kept.iter() {
                logs[usize::from(vbucket.0)] =
                    history.logs.get(vbucket).cloned().unwrap_or_default();
            }
        }
        let logs = Arc::new(FailoverLogs::new(logs));
        Ok(SourceHistory { durable, logs, kept: VbucketSet::all(self.vbuckets) })
    }

    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        let opened = self.parts.iter().map(|(projector, part)| {
            let request = request.clone();
            async move { Ok::<_, Error>((*projector, part.subscribe(request).await?)) }
        });
        let mut streams = try_join_all(opened).await?;
        let coming = self.coming.iter().map(|(projector, part)| {
            let opened = part.subscribe(request.clone());
            async move { Some((*projector, stream::open_joining_stream(*projector, opened).await?)) }
        });
        streams.extend(join_all(coming).await.into_iter().flatten());
        Ok(stream::merge_streams(self.vbuckets, streams))
    }

    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        let opened = self.parts.iter().map(|(projector, part)| {
            let wanted = self.assignment.owned_by(*projector);
            let request = BackfillRequest { vbuckets: Some(wanted.clone()), ..request.clone() };
            async move {
                let mut stream = part.backfill(request).await?;
                match stream.next().await {
                    Some(Ok(BackfillMessage::Begin { cut })) => Ok((wanted, cut, stream)),
                    Some(Err(error)) => Err(error),
                    _ => Err(Error::unavailable("a backfill ended before it began")),
                }
            }
        });
        let (mut cut, mut rest) = (Cut::zero(self.vbuckets), Vec::new());
        for (wanted, part, stream) in try_join_all(opened).await? {
            cut = cut.with_vbuckets_of(&wanted, &part);
            rest.push(stream);
        }
        Ok(stream::merge_backfills(cut, rest))
    }

    async fn sample(&self, bucket: BucketId) -> Result<Vec<Bytes>> {
        let parts = self.parts.values().map(|part| part.sample(bucket));
        Ok(try_join_all(parts).await?.into_iter().flatten().collect())
    }

    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece> {
        let owner = self.owner(request.transfer.vbucket)?;
        self.parts[&owner].hand_over(request).await
    }

    async fn copy(&self, request: CopyRequest) -> Result<CopyAnswer> {
        let what = format!("bucket {} is pushed and has no copies", request.bucket);
        Err(Error::new(ErrorCode::Unsupported, what))
    }
}
