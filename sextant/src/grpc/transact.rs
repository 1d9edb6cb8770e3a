//! The gRPC calls of transactions: Begin, Mutations, Commit and Abort.

use std::net::SocketAddr;
use std::sync::Arc;

use proto::env::Env;
use proto::grpc::{
    AbortReply, AbortRequest, BeginReply, BeginRequest, CommitReply, CommitRequest, MutationsReply,
    MutationsRequest,
};
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::TransactionId;
use proto::{Error, ErrorCode, Result};

use super::admission::CallPlaces;
use super::decode::decode_writes;
use super::open_transaction::OpenTransaction;
use super::request_streams::AsyncAnswer;
use super::transactions::{Transactions, idle_timeout};
use crate::access::Access;

/// The handler of transaction calls for one principal.
pub(super) struct TransactionCalls {
    pub(super) access: Access,
    pub(super) env: Env,
    pub(super) transactions: Arc<Transactions>,
}

impl TransactionCalls {
    /// Begins a transaction. `from` is the address of its client, as text for people.
    pub(super) async fn begin(
        &self,
        request: BeginRequest,
        from: Option<SocketAddr>,
    ) -> Result<BeginReply> {
        let idle_max = idle_timeout(request.idle_timeout_ms)?;
        let bucket = embedded(&self.access, &request.bucket).await?;
        let principal = self.access.principal();
        let from = from.map(|from| format!(" from {from}")).unwrap_or_default();
        let owner = format!("{principal}, gRPC{from}");
        let changes = self.access.writer(&bucket)?.begin(&owner, None)?;
        let begun =
            self.transactions.begin((principal.clone(), owner), changes, bucket, idle_max)?;
        let epoch = match request.snapshot {
            true => Some(self.lease_epoch(&begun).await?.0),
            false => None,
        };
        Ok(BeginReply { transaction: begun.number().0, epoch })
    }

    /// Leases an epoch for a transaction that has just begun. If this fails, the transaction
    /// ends, since its client does not know its number yet.
    async fn lease_epoch(&self, begun: &OpenTransaction) -> Result<proto::model::ids::Epoch> {
        let pinned = begun.pin(&self.access).await;
        if pinned.is_err() {
            begun.abort().await?;
            self.transactions.note_end(begun);
        }
        pinned
    }

    /// Returns the principal's transaction with a number.
    fn find(&self, number: u64) -> Result<Arc<OpenTransaction>> {
        self.transactions.find(TransactionId(number), self.access.principal())
    }

    /// Commits a transaction in a separate task. `held` contains the counts and the memory that
    /// the call has taken; the task gives them back at its end.
    pub(super) async fn commit(
        &self,
        request: CommitRequest,
        held: Option<Arc<CallPlaces>>,
    ) -> Result<CommitReply> {
        let transaction = self.find(request.transaction)?;
        let transactions = Arc::clone(&self.transactions);
        let (done, outcome) = tokio::sync::oneshot::channel();
        let commit = async move {
            let committed = transaction.commit().await;
            transactions.note_end(&transaction);
            drop(held);
            // The client may have disconnected, and may ask again.
            let _ = done.send(committed);
        };
        // A client that disconnects must not leave the outcome unknown.
        self.env.spawn_request("commit", commit).detach();
        let replies =
            outcome.await.map_err(|_| Error::internal("the task of a commit has failed"))??;
        let positions: Vec<_> = replies.iter().map(|reply| reply.position.to_string()).collect();
        let affected = replies.iter().map(|reply| reply.affected).sum();
        Ok(CommitReply { affected, write_position: positions.join(" ") })
    }

    /// Rolls back a transaction.
    pub(super) async fn abort(&self, request: AbortRequest) -> Result<AbortReply> {
        let transaction = self.find(request.transaction)?;
        let aborted = transaction.abort().await;
        self.transactions.note_end(&transaction);
        aborted.map(|()| AbortReply {})
    }
}

/// Returns the embedded bucket with a name. Returns an error for any other bucket, since a
/// transaction cannot change its documents.
async fn embedded(access: &Access, name: &str) -> Result<Arc<BucketInfo>> {
    let bucket = access.bucket(name).await?;
    if bucket.source == SourceKind::Embedded {
        return Ok(bucket);
    }
    let what = format!("bucket {name} is {}, and begins no transactions", bucket.source.name());
    Err(Error::new(ErrorCode::Unsupported, what).with_hint(
        "send its mutations with Push, and commit transactions of its producer with CommitPush",
    ))
}

/// The handler of a stream of mutations in transactions.
pub(super) struct MutationHandler {
    env: Env,
    transactions: Arc<Transactions>,
    /// The transaction of the previous request; later requests may omit its number.
    known: Option<Arc<OpenTransaction>>,
}

impl MutationHandler {
    /// Returns the handler of a new stream.
    pub(super) fn new(env: Env, transactions: Arc<Transactions>) -> Self {
        Self { env, transactions, known: None }
    }

    /// Returns the transaction of a request: the one with `number`, or that of the previous
    /// request.
    fn transaction(&mut self, access: &Access, number: u64) -> Result<Arc<OpenTransaction>> {
        match &self.known {
            Some(known) if number == 0 || number == known.number().0 => Ok(Arc::clone(known)),
            None if number == 0 => {
                let what = "the first request must name a transaction";
                Err(Error::new(ErrorCode::InvalidParameter, what))
            }
            _ => {
                let found = self.transactions.find(TransactionId(number), access.principal())?;
                self.known = Some(Arc::clone(&found));
                Ok(found)
            }
        }
    }
}

#[tonic::async_trait]
impl AsyncAnswer<MutationsRequest, MutationsReply> for MutationHandler {
    async fn answer(
        &mut self,
        access: &Access,
        request: MutationsRequest,
    ) -> Result<MutationsReply> {
        let transaction = self.transaction(access, request.transaction)?;
        let writes = decode_writes(&self.env, request.writes).await?;
        let written = match &request.bucket[..] {
            "" => transaction.write(writes).await,
            name => {
                let bucket = embedded(access, name).await?;
                let number = Some(transaction.number());
                let begin = || access.writer(&bucket)?.begin(transaction.owner(), number);
                transaction.write_to(bucket.id, begin, writes).await
            }
        };
        self.transactions.note_end(&transaction);
        let written = written?;
        Ok(MutationsReply { affected: written.affected, place: written.place })
    }
}
