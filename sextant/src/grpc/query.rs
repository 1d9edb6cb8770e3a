//! The gRPC service `Query`: scans of a consistent snapshot. A request consists of the clauses of
//! a SELECT and has the same meaning as in SQL. Replies contain tokens with which a client
//! continues the scan later, at any router.

use std::sync::Arc;

use futures::stream;
use proto::env::Env;
use proto::grpc::query_server::Query;
use proto::grpc::{ScanReply, ScanRequest};
use proto::model::cut::WritePosition;
use proto::model::ids::TransactionId;
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::{Consistency, Output};
use proto::{Error, ErrorCode, Result};
use router::{ScanBatch, Token};
use tonic::{Request, Response, Status};

use super::admission::{CallPlaces, places_of};
use super::caller::Callers;
use super::open_transaction::OpenTransaction;
use super::reply_form::Form;
use super::status::{counted_status, status};
use super::transactions::Transactions;
use crate::access::{Access, BatchSource, TransactionView};
use crate::flow::ClientCapacity;
use crate::rows::entry::EntryPrinter;
use crate::rows::suspended_result::{Park, SuspendedResult};
use crate::sql::parse::SelectParts;
use crate::sql::plan::{IndexPlan, Plan, Relation, resolve};
use crate::sql::texts::{is_long, parse_call_of};

/// The time limit for a scan to have its epoch and the answers of the nodes, in milliseconds.
const SERVE_TIMEOUT_MS: u64 = 10_000;

/// The implementation of the gRPC service `Query`.
pub(super) struct QueryService {
    pub(super) callers: Callers,
    pub(super) transactions: Arc<Transactions>,
}

/// Returns the error for an invalid request.
fn request_error(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

/// Returns the SQL clauses of a request.
pub(super) fn parts(request: &ScanRequest) -> SelectParts {
    SelectParts {
        from: request.index.clone(),
        columns: request.columns.clone(),
        filter: request.r#where.clone(),
        limit: request.limit,
        offset: request.offset,
    }
}

impl QueryService {
    /// Returns the plan of a request.
    async fn plan(
        &self,
        access: &Access,
        request: &ScanRequest,
        held: Option<Arc<CallPlaces>>,
    ) -> Result<IndexPlan> {
        let memory = self.callers.doors.flow().session_memory.of(access.principal());
        let parts = parts(request);
        let (bytes, parse) = (parts.len_bytes(), move || parts.parse());
        let (select, room) = parse_call_of(bytes, parse, &memory, &self.callers.env).await?;
        let relation = self.relation(access, request).await?;
        let plan = match is_long(&select) {
            false => resolve(&select, Some(&relation))?.plan(&[])?,
            true => {
                let relation = relation.clone();
                let plan = move || {
                    let planned = resolve(&select, Some(&relation))?.plan(&[]);
                    // The thread continues after its call is cancelled, so the call must count
                    // until its end.
                    drop((room, held));
                    planned
                };
                self.callers.env.blocking(plan).await?
            }
        };
        match plan {
            Plan::Index(plan) if plan.merge.is_some() => Err(Error::internal(
                "the scan of a request without DISTINCT and ORDER BY is divided",
            )),
            Plan::Index(plan) if matches!(plan.request.output, Output::Rows { .. }) => Ok(*plan),
            Plan::Index(_) => {
                Err(Error::new(ErrorCode::Unsupported, "gRPC scans have no aggregates")
                    .with_hint("use SQL for aggregates"))
            }
            _ => Err(request_error(format!("{:?} is a bucket, not an index", request.index))),
        }
    }

    /// Returns the index or bucket of a request. For a scan that continues, or that runs in a
    /// transaction, it is the same generation of the index as before.
    async fn relation(&self, access: &Access, request: &ScanRequest) -> Result<Relation> {
        let relation = access.relation(&request.index).await?;
        let Relation::Index(shown) = &relation else { return Ok(relation) };
        if request.transaction > 0 {
            let number = TransactionId(request.transaction);
            let transaction = self.transactions.find(number, access.principal())?;
            return transaction
                .generation_to_read(shown, &access.catalog())
                .await
                .map(Relation::Index);
        }
        if request.token.is_empty() {
            return Ok(relation);
        }
        let began = Token::decode(&request.token)?.local_index();
        let catalog = access.catalog();
        let other =
            Some(began).filter(|began| began.index == shown.id && *began != shown.local_id());
        let Some(other) = other else { return Ok(relation) };
        let found = catalog.local_index(other).cloned().map(Relation::Index);
        found.ok_or_else(|| {
            let what = format!(
                "the generation of index {:?} in which the scan began is gone",
                request.index
            );
            Error::new(ErrorCode::SnapshotTooOld, what)
                .with_hint("begin the scan anew without a token")
        })
    }

    /// Begins a scan and returns its replies.
    async fn begin(
        &self,
        access: &Access,
        request: ScanRequest,
        held: Option<Arc<CallPlaces>>,
    ) -> Result<ScanReplies> {
        let form = Form::of(&request)?;
        if request.transaction > 0 {
            // Order matters: the first read of the transaction fixes what the name of the index
            // means.
            let number = TransactionId(request.transaction);
            self.transactions.find(number, access.principal())?.pin(access).await?;
        }
        let mut plan = self.plan(access, &request, held).await?;
        plan.request.ordered = !request.unordered;
        plan.request.reverse = request.reverse;
        plan.request.timeout_ms = SERVE_TIMEOUT_MS;
        plan.request.consistency = consistency(&request, &plan)?;
        let transaction = self.transaction(access, &request, &mut plan).await?;
        let token = (!request.token.is_empty()).then_some(&request.token[..]);
        let mut scan = access.scan(plan.request.clone(), token).await?;
        let paged = request.page_rows > 0;
        if paged {
            scan.end_page_after(request.page_rows);
        }
        let printer = EntryPrinter::new(&plan.index.spec, plan.cells.clone());
        let catalog = access.catalog();
        let version =
            catalog.version(plan.index.bucket).map(|(_, _, version)| version.name.clone());
        let version = version.unwrap_or_default();
        let (rest, first, done) = (None, true, false);
        Ok(ScanReplies {
            plan,
            printer,
            scan,
            version,
            transaction,
            form,
            rest,
            paged,
            first,
            done,
        })
    }

    /// Makes a scan read in the transaction that the request names. Returns the transaction.
    async fn transaction(
        &self,
        access: &Access,
        request: &ScanRequest,
        plan: &mut IndexPlan,
    ) -> Result<Option<Arc<OpenTransaction>>> {
        if request.transaction == 0 {
            return Ok(None);
        }
        let ScanRequest { consistency, at_plus, token, page_rows, .. } = request;
        if !consistency.is_empty() || !at_plus.is_empty() || !token.is_empty() || *page_rows > 0 {
            return Err(request_error(
                "a scan in a transaction takes no consistency, at_plus, token and page_rows",
            ));
        }
        let number = TransactionId(request.transaction);
        let transaction = self.transactions.find(number, access.principal())?;
        let viewed = transaction.view(access, plan.index.bucket).await;
        self.transactions.note_end(&transaction);
        let TransactionView { snapshot, own } = viewed?;
        plan.request.own = own;
        if let Some(epoch) = snapshot {
            plan.request.consistency = Consistency::Epoch(epoch);
        }
        Ok(Some(transaction))
    }
}

/// Returns the consistency of a scan, as the request specifies it.
fn consistency(request: &ScanRequest, plan: &IndexPlan) -> Result<Consistency> {
    if !request.at_plus.is_empty() {
        let positions = request.at_plus.split_whitespace().map(str::parse::<WritePosition>);
        let positions = positions.collect::<Result<Vec<_>>>()?;
        let of_bucket = positions.into_iter().find(|of| of.bucket == plan.index.bucket);
        let Some(position) = of_bucket else {
            return Err(request_error("at_plus names a position in another bucket"));
        };
        return Ok(Consistency::AtPlus(position.positions));
    }
    match &request.consistency[..] {
        // A call has no session that could remember the epochs of earlier scans.
        "" | "any" | "stale" => Ok(Consistency::Any),
        "request_plus" => Ok(Consistency::RequestPlus),
        other => Err(request_error(format!(
            "consistency must be any, request_plus or stale, not {other:?}"
        ))),
    }
}

/// A scan in progress, which returns replies.
struct ScanReplies {
    plan: IndexPlan,
    printer: EntryPrinter,
    scan: Box<dyn BatchSource>,
    /// The version of the data set that the scan reads; empty if the bucket is not a data set.
    version: String,
    /// The transaction in which the scan reads. While the client reads, the transaction does not
    /// count as idle.
    transaction: Option<Arc<OpenTransaction>>,
    form: Form,
    /// The rows that did not fit into the last reply.
    rest: Option<RowBlock>,
    /// True if the last reply of an unfinished scan contains a token.
    paged: bool,
    first: bool,
    done: bool,
}

impl Park for Box<ScanReplies> {
    fn park(&mut self) {
        self.scan.park();
    }
}

impl ReplySource for Box<ScanReplies> {
    async fn next(&mut self) -> Result<Option<ScanReply>> {
        if self.done {
            return Ok(None);
        }
        if let Some(transaction) = &self.transaction {
            transaction.touch();
        }
        let mut reply = ScanReply::default();
        let block = match self.rest.take() {
            Some(rest) => Some(rest),
            None => self.next_block().await?,
        };
        match block {
            Some(block) => self.add_rows(block, &mut reply).await?,
            None => self.done = true,
        }
        if std::mem::take(&mut self.first) {
            reply.columns = self.plan.columns.iter().map(|column| column.name.clone()).collect();
            reply.version = std::mem::take(&mut self.version);
        }
        self.done |= self.scan.page_is_full() && self.rest.is_none();
        // A token keeps its epoch readable, so only the last reply of a page has one.
        if self.done && self.paged {
            reply.token = self.scan.token()?.unwrap_or_default();
        }
        reply.epoch = self.scan.epoch().0;
        Ok(Some(reply))
    }
}

impl ScanReplies {
    /// Returns the rows of the next batch; `None` at the end of the scan.
    async fn next_block(&mut self) -> Result<Option<RowBlock>> {
        match self.scan.next().await? {
            Some(ScanBatch::Rows(block)) => Ok(Some(block)),
            Some(ScanBatch::Aggregates(_)) => {
                Err(Error::internal("a scan of rows received aggregates"))
            }
            None => Ok(None),
        }
    }

    /// Adds rows to a reply. If the reply becomes too long, the remaining rows are stored for the
    /// next reply, since a client may request many columns of a short row.
    async fn add_rows(&mut self, block: RowBlock, reply: &mut ScanReply) -> Result<()> {
        let mut put = self.form.begin(&self.plan, &self.printer, &block);
        let (mut rows, mut taken) = (block.iter(), 0);
        while !put.is_full()
            && let Some(row) = rows.next()
        {
            put.push(&self.plan, &mut self.printer, row)?;
            taken += 1;
            if self.printer.reset_if_due() {
                tokio::task::yield_now().await;
            }
        }
        put.finish(reply);
        let at = block.data.len() - rows.rest_bytes();
        if at < block.data.len() {
            let data = block.data.slice(at..);
            self.rest = Some(RowBlock { rows: block.rows - taken, data });
        }
        Ok(())
    }
}

type ReplyStream =
    std::pin::Pin<Box<dyn futures::Stream<Item = std::result::Result<ScanReply, Status>> + Send>>;

/// A scan that returns replies.
trait ReplySource: Park {
    /// Returns the next reply, `None` after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<ScanReply>>> + Send;
}

/// Returns a stream of replies at the rate at which the client reads: HTTP/2 polls for a reply
/// when its window has space. A client may stop reading and never continue, so the scan is parked
/// after a time limit.
fn reply_stream(replies: impl ReplySource, env: &Env, flow: &Arc<ClientCapacity>) -> ReplyStream {
    let first = SuspendedResult::new(replies, env, flow);
    let (env, flow) = (env.clone(), Arc::clone(flow));
    Box::pin(stream::try_unfold(first, move |suspended| {
        let (env, flow) = (env.clone(), Arc::clone(&flow));
        async move { next_reply(suspended, &env, &flow).await.map_err(status) }
    }))
}

/// Returns the next reply with the source for later replies.
async fn next_reply<R: ReplySource>(
    suspended: SuspendedResult<R>,
    env: &Env,
    flow: &Arc<ClientCapacity>,
) -> Result<Option<(ScanReply, SuspendedResult<R>)>> {
    let Some(mut replies) = suspended.resume() else {
        let what =
            "the scan was given up, because its client has not read for the time of cursor_idle_s";
        let hint = "go on with the token of the last reply, or begin anew";
        return Err(Error::new(ErrorCode::SnapshotTooOld, what).with_hint(hint));
    };
    let reply = replies.next().await?;
    Ok(reply.map(|reply| (reply, SuspendedResult::new(replies, env, flow))))
}

#[tonic::async_trait]
impl Query for QueryService {
    type ScanStream = ReplyStream;

    async fn scan(
        &self,
        request: Request<ScanRequest>,
    ) -> std::result::Result<Response<ReplyStream>, Status> {
        let access = self.callers.of(&request)?;
        let held = places_of(&request);
        let begun = self.begin(&access, request.into_inner(), held).await;
        let replies = begun.map_err(|error| counted_status(&access, error))?;
        Ok(Response::new(reply_stream(
            Box::new(replies),
            &self.callers.env,
            self.callers.doors.flow(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use proto::grpc::query_client::QueryClient;
    use proto::grpc::query_server::QueryServer;
    use tokio::net::TcpListener;
    use tonic::transport::{Channel, Server};

    use super::*;
    use crate::flow::ClientLimits;
    use crate::listen::connections;
    use crate::rows::suspended_result::SUSPENDED_RUNS;

    /// A number of replies that exceeds the windows to a client.
    const REPLIES: u64 = 200;

    /// A source of numbered replies with the length of a batch, which counts how often it is
    /// parked.
    #[derive(Clone, Default)]
    struct Numbered(u64, Arc<AtomicU64>);

    impl Park for Numbered {
        fn park(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl ReplySource for Numbered {
        async fn next(&mut self) -> Result<Option<ScanReply>> {
            self.0 += 1;
            let reply =
                |epoch| ScanReply { epoch, token: "x".repeat(64 << 10), ..Default::default() };
            Ok((self.0 <= REPLIES).then(|| reply(self.0)))
        }
    }

    #[tonic::async_trait]
    impl Query for Numbered {
        type ScanStream = ReplyStream;

        async fn scan(
            &self,
            _: Request<ScanRequest>,
        ) -> std::result::Result<Response<ReplyStream>, Status> {
            Ok(Response::new(reply_stream(
                self.clone(),
                &Env::real(),
                &ClientCapacity::new(ClientLimits::default()),
            )))
        }
    }

    #[tokio::test]
    async fn a_scan_is_parked_while_its_client_does_not_read() {
        let numbered = Numbered::default();
        let parked = Arc::clone(&numbered.1);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Server::builder().add_service(QueryServer::new(numbered));
        let _serving = Env::real().spawn_request("grpc", async move {
            server.serve_with_incoming(connections(listener)).await.expect("served");
        });
        let channel = Channel::from_shared(address).expect("an address").connect_lazy();
        let scan = QueryClient::new(channel).scan(ScanRequest::default()).await.expect("a scan");
        let mut replies = scan.into_inner();
        for epoch in 1..=REPLIES {
            if epoch == REPLIES / 10 {
                assert_eq!(parked.load(Ordering::Relaxed), 0, "the scan is read");
                tokio::time::sleep(SUSPENDED_RUNS + Duration::from_millis(500)).await;
            }
            let reply = replies.message().await.expect("no error").expect("a reply");
            assert_eq!(reply.epoch, epoch);
        }
        assert!(replies.message().await.expect("no error").is_none());
        assert_eq!(parked.load(Ordering::Relaxed), 1, "once, when nobody read");
    }
}
