//! The writers, each of which changes its own documents, one statement after another, over SQL or
//! gRPC.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::grpc::document_write::Kind;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::{DocumentWrite, WriteReply, WriteRequest};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::Client;
use tonic::Streaming;

use super::clients::{ANSWER_WITHIN, Failed, PAUSE, Shared, Tasks, execute};

/// The number of documents of each writer.
const DOCUMENTS: usize = 500;
/// The number of writers over SQL; one more uses gRPC.
const BY_SQL: u64 = 3;
/// The maximum number of documents of a statement.
const TOGETHER_MAX: usize = 4;
/// The range of pauses of a writer after a statement, in milliseconds.
const REST_MS: std::ops::Range<u64> = 2..20;

/// Starts all writers.
pub fn begin(shared: &Arc<Shared>, tasks: &mut Tasks) {
    for number in 0..=BY_SQL {
        let writer = Writer::new(number, Arc::clone(shared));
        match number {
            BY_SQL => tasks.run(writer.by_grpc()),
            _ => tasks.run(writer.by_sql()),
        }
    }
}

struct Writer {
    number: u64,
    shared: Arc<Shared>,
    random: fastrand::Rng,
    /// The documents of the writer, by their number in the history.
    documents: Vec<usize>,
    /// The number of ids that the writer has used.
    named: usize,
    router: usize,
}

/// A statement before it is sent.
struct Statement {
    number: usize,
    /// The id of each document, and its JSON, or `None` for a deletion.
    writes: Vec<(String, Option<String>)>,
    documents: Vec<usize>,
}

impl Writer {
    fn new(number: u64, shared: Arc<Shared>) -> Self {
        let random = fastrand::Rng::with_seed(shared.seed ^ (number + 1) << 32);
        let router = number as usize;
        let mut writer = Self { number, shared, random, documents: Vec::new(), named: 0, router };
        while writer.documents.len() < DOCUMENTS {
            writer.name_another();
        }
        writer
    }

    fn name_another(&mut self) {
        let id = format!("w{}-{}", self.number, self.named);
        self.named += 1;
        self.documents.push(self.shared.history().add(id));
    }

    /// Chooses documents. All are written or all are deleted; with `mixed`, this is chosen for each
    /// document.
    fn choose(&mut self, mixed: bool) -> Statement {
        let mut writes: Vec<(usize, bool)> = Vec::new();
        let mut delete = self.random.u32(..5) == 0;
        for _ in 0..self.random.usize(1..=TOGETHER_MAX) {
            let document = self.documents[self.random.usize(..self.documents.len())];
            if mixed {
                delete = self.random.u32(..5) == 0;
            }
            if !writes.iter().any(|(known, _)| *known == document) {
                writes.push((document, delete));
            }
        }
        let mut history = self.shared.history();
        let (number, versions) = history.send(&writes);
        let write = |((document, delete), version): (&(usize, bool), u64)| {
            let json = (!delete).then(|| history.content(*document, version).json());
            (history.id(*document).to_owned(), json)
        };
        Statement {
            number,
            writes: writes.iter().zip(versions).map(write).collect(),
            documents: writes.iter().map(|(document, _)| *document).collect(),
        }
    }

    fn answered(&mut self, statement: &Statement) {
        self.shared.history().acknowledge(statement.number);
        self.shared.report(|report| report.writes += 1);
    }

    /// Handles a statement without an answer. Since it may still take effect, its documents are
    /// replaced by new ones.
    fn unanswered(&mut self, statement: &Statement, error: &Failed) {
        self.shared.say(|| format!("writer {}: {error}", self.number));
        self.shared.report(|report| report.writes_unknown += 1);
        self.documents.retain(|document| !statement.documents.contains(document));
        while self.documents.len() < DOCUMENTS {
            self.name_another();
        }
        self.router += 1;
    }

    async fn rest(&mut self) {
        tokio::time::sleep(Duration::from_millis(self.random.u64(REST_MS))).await;
    }

    async fn by_sql(mut self) {
        let mut session: Option<Client> = None;
        while self.shared.is_running() {
            let Some(client) = &session else {
                session = self.shared.sql(self.router).await.ok();
                if session.is_none() {
                    self.router += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            };
            let statement = self.choose(false);
            match execute(client, &sql(&statement)).await {
                Ok(()) => self.answered(&statement),
                Err(error) => {
                    self.unanswered(&statement, &error);
                    session = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
            self.rest().await;
        }
    }

    async fn by_grpc(mut self) {
        let mut stream: Option<Ingest> = None;
        while self.shared.is_running() {
            let Some(ingest) = &mut stream else {
                stream = Ingest::open(&self.shared, self.router).await.ok();
                if stream.is_none() {
                    self.router += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            };
            let statement = self.choose(true);
            match ingest.write(&statement).await {
                Ok(()) => self.answered(&statement),
                Err(error) => {
                    self.unanswered(&statement, &error);
                    stream = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
            self.rest().await;
        }
    }
}

fn sql(statement: &Statement) -> String {
    let upserts: Vec<_> = statement
        .writes
        .iter()
        .filter_map(|(id, json)| Some(format!("('{id}', '{}')", json.as_ref()?)))
        .collect();
    if upserts.is_empty() {
        let ids: Vec<_> = statement.writes.iter().map(|(id, _)| format!("'{id}'")).collect();
        return format!("DELETE FROM c WHERE id IN ({})", ids.join(", "));
    }
    format!(
        "INSERT INTO c (id, doc) VALUES {} ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
        upserts.join(", ")
    )
}

/// A gRPC stream of writes, of which one at a time is in flight.
struct Ingest {
    requests: mpsc::Sender<WriteRequest>,
    replies: Streaming<WriteReply>,
}

impl Ingest {
    async fn open(shared: &Shared, router: usize) -> Result<Self, Failed> {
        let mut client = IngestClient::new(shared.grpc(router).await?);
        let (requests, received) = mpsc::channel(1);
        let received = futures::stream::unfold(received, async |mut received| {
            received.recv().await.map(|request| (request, received))
        });
        let replies = timeout(ANSWER_WITHIN, client.write(received)).await??.into_inner();
        Ok(Self { requests, replies })
    }

    async fn write(&mut self, statement: &Statement) -> Result<(), Failed> {
        let write = |(id, json): &(String, Option<String>)| DocumentWrite {
            id: id.clone(),
            kind: Some(match json {
                Some(json) => Kind::Upsert(Bytes::from(json.clone())),
                None => Kind::Delete(true),
            }),
        };
        let writes = statement.writes.iter().map(write).collect();
        let request = WriteRequest { bucket: "c".into(), writes };
        let ended = || Failed("the stream has ended".into());
        self.requests.send(request).await.map_err(|_| ended())?;
        let reply = timeout(ANSWER_WITHIN, self.replies.message()).await??;
        reply.map(drop).ok_or_else(ended)
    }
}
