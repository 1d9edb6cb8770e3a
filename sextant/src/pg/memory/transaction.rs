//! A transaction in the cluster in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::bucket::BucketInfo;
use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{
    BucketId, Epoch, Seqno, TransactionId, TransactionPlace, VbucketId, Vbuuid,
};
use proto::rpc::api::{CheckedWrites, Decision, WriteKind, WriteReply};
use proto::rpc::scan::UncommittedView;
use proto::{Error, ErrorCode, Result};

use super::state::MemoryState;
use crate::access::{BucketTransaction, TransactionView};

/// A transaction in the cluster in memory.
pub(super) struct MemoryTransaction {
    state: Arc<Mutex<MemoryState>>,
    bucket: Arc<BucketInfo>,
    id: TransactionId,
    place: Mutex<TransactionPlace>,
    prepared: Mutex<Option<Epoch>>,
}

impl MemoryTransaction {
    pub(super) fn new(
        state: Arc<Mutex<MemoryState>>,
        bucket: Arc<BucketInfo>,
        id: TransactionId,
    ) -> Self {
        Self { state, bucket, id, place: Mutex::default(), prepared: Mutex::default() }
    }

    /// Removes the changes that the transaction has made after a position.
    fn remove_after(&self, place: TransactionPlace) {
        let mut state = self.state.lock().unwrap();
        state.changes.retain(|(id, at), _| *id != self.id || *at <= place);
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        self.remove_after(TransactionPlace(0));
    }
}

#[async_trait]
impl BucketTransaction for MemoryTransaction {
    fn id(&self) -> TransactionId {
        self.id
    }

    fn bucket(&self) -> &BucketInfo {
        &self.bucket
    }

    fn own_changes(&self) -> Option<UncommittedView> {
        let place = *self.place.lock().unwrap();
        (place.0 > 0).then_some(UncommittedView { transaction: self.id, place })
    }

    async fn write(&self, snapshot: Option<Epoch>, writes: CheckedWrites) -> Result<u64> {
        tokio::task::yield_now().await;
        let mut state = self.state.lock().unwrap();
        if state.is_full {
            return Err(Error::new(ErrorCode::TooBusy, "no room for transactions"));
        }
        let mut documents =
            state.view(self.bucket.id, TransactionView { snapshot, own: self.own_changes() });
        let mut changes = Vec::new();
        for write in writes.writes() {
            let id = write.id().to_string();
            let change = match write.kind() {
                WriteKind::Insert(_) if documents.contains_key(&id) => {
                    let message = format!("there is a document {id:?}");
                    return Err(Error::new(ErrorCode::DuplicateId, message));
                }
                WriteKind::Insert(document) | WriteKind::Upsert(document) => {
                    documents.insert(id.clone(), document.clone());
                    Some(document.clone())
                }
                WriteKind::Delete => {
                    if documents.remove(&id).is_none() {
                        continue;
                    }
                    None
                }
            };
            changes.push((id, change));
        }
        let affected = changes.len() as u64;
        let mut place = self.place.lock().unwrap();
        for change in changes {
            place.0 += 1;
            state.changes.insert((self.id, *place), change);
        }
        Ok(affected)
    }

    async fn rollback_to(&self, place: TransactionPlace) -> Result<()> {
        self.remove_after(place);
        self.place.lock().unwrap().0 += 1;
        Ok(())
    }

    async fn commit(&self, snapshot: Option<Epoch>, _: &[BucketId]) -> Result<WriteReply> {
        let mut state = self.state.lock().unwrap();
        let all = std::mem::take(&mut state.changes).into_iter();
        let (mine, others): (BTreeMap<_, _>, _) = all.partition(|((id, _), _)| *id == self.id);
        state.changes = others;
        let last: BTreeMap<String, Option<Bytes>> = mine.into_values().collect();
        let bucket = self.bucket.id;
        for id in last.keys() {
            let changed = state.changed.get(&(bucket, id.clone())).copied().unwrap_or_default();
            if snapshot.is_some_and(|snapshot| changed > snapshot.0) {
                let what = format!("document {id:?} was changed by another transaction");
                return Err(Error::new(ErrorCode::Conflict, what));
            }
        }
        state.epoch += 1;
        let (epoch, affected) = (state.epoch, last.len() as u64);
        for (id, document) in last {
            state.changed.insert((bucket, id.clone()), epoch);
            let documents = state.documents.entry(bucket).or_default();
            match document {
                Some(document) => documents.insert(id, document),
                None => documents.remove(&id),
            };
        }
        let position = Position { vbuuid: Vbuuid(1), seqno: Seqno(epoch) };
        let positions = vec![(VbucketId(0), position)];
        Ok(WriteReply { affected, position: WritePosition { bucket, positions } })
    }

    async fn prepare(
        &self,
        snapshot: Option<Epoch>,
        _: TransactionId,
        _: &[BucketId],
    ) -> Result<u64> {
        *self.prepared.lock().unwrap() = snapshot;
        Ok(1)
    }

    async fn decide(&self, _: TransactionId, decision: Decision) -> Result<WriteReply> {
        let snapshot = *self.prepared.lock().unwrap();
        match decision {
            Decision::Commit { participants } => self.commit(snapshot, &participants).await,
            Decision::RollBack => Err(Error::new(ErrorCode::Conflict, "rolled back")),
        }
    }
}
