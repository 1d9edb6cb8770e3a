//! A pushed bucket: its producer numbers the mutations, two projectors share its vbuckets, and an
//! operator hands vbuckets over from one to the other while faults are active.
//!
//! The producer keeps all its mutations. After an error it queries the end of each vbucket and
//! continues there; a vbucket that ends before an acknowledged mutation has lost this mutation.
//! Scans are judged like other scans, by a history of this bucket only: the mutations of a document
//! take effect in the order of their numbers.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::{PositionsRequest, PushMutation, PushRequest};
use proto::lock::lock;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;
use tonic::transport::Channel;

use super::HEAL_WITHIN;
use super::clients::{ANSWER_WITHIN, Failed, PAUSE, Shared, Tasks, execute, select};
use super::cluster::PROJECTORS;
use super::compare::documents;
use super::documents::FED;
use super::history::{History, Row, Scan};
use super::scanners::SETTINGS;
use crate::harness::sql::simple;

/// The number of vbuckets of the bucket.
const VBUCKETS: u64 = 8;
/// The number of documents in the bucket.
const DOCUMENTS: usize = 300;
/// The maximum number of documents that change between two pushes.
const TOGETHER_MAX: usize = 20;
/// The range of pauses of the producer and the scanner, in milliseconds.
const REST_MS: std::ops::Range<u64> = 5..60;
/// The range of pauses of the operator, in milliseconds.
const HAND_OVERS_MS: std::ops::Range<u64> = 200..1500;

/// Creates the bucket and its index.
pub async fn prepare(client: &Client) -> Result<(), Failed> {
    let with = format!("vbuckets = {VBUCKETS}, projectors = {}", PROJECTORS.len());
    execute(client, &format!("CREATE BUCKET f FROM PUSH WITH ({with})")).await?;
    execute(client, &FED.create()).await
}

/// The pushed bucket and the history of its pushes.
pub struct Feed {
    shared: Arc<Shared>,
    history: Mutex<History>,
}

impl Feed {
    /// Returns a feed with an empty history.
    pub fn new(shared: &Arc<Shared>) -> Arc<Self> {
        let history = Mutex::new(History::new(shared.seed));
        Arc::new(Self { shared: Arc::clone(shared), history })
    }

    fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    fn random(&self, salt: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.shared.seed ^ salt)
    }

    /// Starts the producer, the scanner and the operator.
    pub fn begin(self: &Arc<Self>, tasks: &mut Tasks) {
        tasks.run(Producer::new(Arc::clone(self)).run());
        tasks.run(scan(Arc::clone(self)));
        tasks.run(hand_over(Arc::clone(self)));
    }

    /// Scans the index, judges the result and returns its rows. With `request_plus` the scan must
    /// include all writes acknowledged before it.
    async fn judge(&self, client: &Client, request_plus: bool) -> Result<Vec<Row>, Failed> {
        let consistency = if request_plus { "request_plus" } else { "any" };
        execute(client, &format!("{SETTINGS}; SET consistency = '{consistency}'")).await?;
        let not_before = Some(self.history().tick()).filter(|_| request_plus);
        let rows = select(client, &FED.select()).await?;
        let mut history = self.history();
        let end = history.tick();
        let scan = Scan { index: &FED, range: None, not_before, end, ordered: false, rows: &rows };
        let verdict = history.judge(&scan);
        drop(history);
        self.shared.note(&verdict);
        Ok(rows)
    }

    /// After the end of all pushes, waits until the hand-overs in progress end, and compares the
    /// whole bucket.
    pub async fn compare(&self) {
        let begun = Instant::now();
        while let Err(error) = self.check_at_rest().await {
            if begun.elapsed() > HEAL_WITHIN {
                self.shared.violation(format!("vbuckets are still on their way: {error}"));
                return;
            }
            sleep(PAUSE).await;
        }
        for router in 0..self.shared.routers() {
            let compared = async {
                let client = self.shared.sql(router).await?;
                let rows = self.judge(&client, true).await?;
                documents(&self.shared, &client, "f", &rows).await
            };
            if let Err(error) = compared.await {
                self.shared.violation(format!("comparing the feed at router {router}: {error}"));
            }
        }
    }

    /// Returns an error while a vbucket is being handed over.
    async fn check_at_rest(&self) -> Result<(), Failed> {
        let client = self.shared.sql(0).await?;
        let buckets = simple(&client, "SHOW BUCKETS").await?;
        let mine = buckets.into_iter().find(|row| row[0].as_deref() == Some("f"));
        match mine {
            Some(row) if row[5].as_deref() == Some("0") => Ok(()),
            row => Err(Failed(format!("{row:?}"))),
        }
    }
}

/// Scans until the run ends.
async fn scan(feed: Arc<Feed>) {
    let mut random = feed.random(0x5ca9);
    for router in 0.. {
        if !feed.shared.is_running() {
            return;
        }
        let scanned = match feed.shared.sql(router).await {
            Ok(client) => feed.judge(&client, random.bool()).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = scanned {
            feed.shared.say(|| format!("scanner of the feed: {error}"));
            feed.shared.report(|report| report.scans_refused += 1);
            sleep(PAUSE).await;
        }
        sleep(Duration::from_millis(random.u64(REST_MS))).await;
    }
}

/// Hands vbuckets over, and sometimes cancels a hand-over.
async fn hand_over(feed: Arc<Feed>) {
    let mut random = feed.random(0x4a9d);
    for router in 0.. {
        sleep(Duration::from_millis(random.u64(HAND_OVERS_MS))).await;
        if !feed.shared.is_running() {
            return;
        }
        let (some, to) = (random.u64(1..4), PROJECTORS[random.usize(..PROJECTORS.len())]);
        let first = random.u64(..VBUCKETS);
        let vbuckets: Vec<_> = (0..some).map(|n| ((first + n) % VBUCKETS).to_string()).collect();
        let statement = match random.u32(..6) {
            0 => "ALTER BUCKET f CANCEL MOVES".to_owned(),
            _ => format!("ALTER BUCKET f MOVE VBUCKET {} TO {to}", vbuckets.join(", ")),
        };
        let asked = match feed.shared.sql(router).await {
            Ok(client) => execute(&client, &statement).await,
            Err(error) => Err(error),
        };
        match asked {
            Ok(()) => feed.shared.report(|report| report.hand_overs_asked += 1),
            // A hand-over in progress elsewhere, an absent member, or no leader: the next statement is tried.
            Err(error) => feed.shared.say(|| format!("operator: {statement}: {error}")),
        }
    }
}

/// The producer, which numbers and keeps mutations.
struct Producer {
    feed: Arc<Feed>,
    random: fastrand::Rng,
    documents: Vec<usize>,
    /// The mutations of each vbucket, each with its statement in the history.
    logs: Vec<Vec<(PushMutation, usize)>>,
    /// The number of acknowledged mutations of each vbucket.
    taken: Vec<usize>,
    router: usize,
}

impl Producer {
    fn new(feed: Arc<Feed>) -> Self {
        let random = feed.random(0xfeed);
        let mut history = feed.history();
        let documents = (0..DOCUMENTS).map(|n| history.add(format!("f-{n}"))).collect();
        drop(history);
        let (logs, taken) = (vec![Vec::new(); VBUCKETS as usize], vec![0; VBUCKETS as usize]);
        Self { feed, random, documents, logs, taken, router: 0 }
    }

    async fn run(mut self) {
        let mut ends_at = None;
        loop {
            let is_running = self.feed.shared.is_running();
            if is_running {
                (0..self.random.usize(1..=TOGETHER_MAX)).for_each(|_| self.change());
            } else if self.rest().is_empty() {
                return;
            } else if *ends_at.get_or_insert(Instant::now() + HEAL_WITHIN) < Instant::now() {
                return self.feed.shared.violation(
                    "the producer's last mutations are refused by a whole cluster".into(),
                );
            }
            if let Err(error) = self.push_some().await {
                self.feed.shared.say(|| format!("producer: {error}"));
                self.router += 1;
                sleep(PAUSE).await;
            }
            sleep(Duration::from_millis(self.random.u64(REST_MS))).await;
        }
    }

    /// Changes or deletes a random document.
    fn change(&mut self) {
        let document = self.documents[self.random.usize(..self.documents.len())];
        let is_deletion = self.random.u32(..6) == 0;
        let mut history = self.feed.history();
        let (statement, versions) = history.send(&[(document, is_deletion)]);
        let id = history.id(document).to_owned();
        let json = (!is_deletion).then(|| history.content(document, versions[0]).json());
        drop(history);
        let vbucket = xxhash_rust::xxh3::xxh3_64(id.as_bytes()) % VBUCKETS;
        let log = &mut self.logs[vbucket as usize];
        let (seqno, document) = (log.len() as u64 + 1, json.map(Bytes::from));
        let vbuuid = 7 + vbucket;
        log.push((
            PushMutation { vbucket: vbucket as u32, vbuuid, seqno, id, document, position: 0 },
            statement,
        ));
    }

    /// Returns the mutations that are not known to be acknowledged.
    fn rest(&self) -> Vec<PushMutation> {
        let left = self.logs.iter().zip(&self.taken);
        left.flat_map(|(log, taken)| log[*taken..].iter().map(|(m, _)| m.clone())).collect()
    }

    /// Pushes these mutations; after an error, queries the position from which to continue.
    async fn push_some(&mut self) -> Result<(), Failed> {
        let mutations = self.rest();
        if mutations.is_empty() {
            return Ok(());
        }
        let channel = self.feed.shared.grpc(self.router).await?;
        match push(channel.clone(), mutations).await {
            Ok(()) => {
                let all = self.logs.iter().map(Vec::len).collect();
                self.acknowledge(all);
                Ok(())
            }
            Err(error) => {
                let mut client = IngestClient::new(channel);
                let asked = client.positions(PositionsRequest { bucket: "f".into() });
                let reply = timeout(ANSWER_WITHIN, asked).await??.into_inner();
                let mut ends = self.taken.clone();
                for position in reply.positions {
                    let (vbucket, end) = (position.vbucket as usize, position.seqno as usize);
                    if end < self.taken[vbucket] {
                        let taken = self.taken[vbucket];
                        let what = format!("vbucket {vbucket} ends at {end}, {taken} was taken");
                        self.feed.shared.report(|report| report.lost += 1);
                        self.feed.shared.violation(what);
                    }
                    ends[vbucket] = end;
                }
                self.acknowledge(ends);
                Err(error)
            }
        }
    }

    fn acknowledge(&mut self, ends: Vec<usize>) {
        let mut history = self.feed.history();
        let mut count = 0;
        for ((log, taken), end) in self.logs.iter().zip(&self.taken).zip(&ends) {
            for (_, statement) in log.get(*taken..*end).unwrap_or_default() {
                history.acknowledge(*statement);
                count += 1;
            }
        }
        drop(history);
        self.taken = ends;
        self.feed.shared.report(|report| report.pushed += count);
    }
}

async fn push(channel: Channel, mutations: Vec<PushMutation>) -> Result<(), Failed> {
    let request = PushRequest { bucket: "f".into(), mutations, ..PushRequest::default() };
    let mut client = IngestClient::new(channel);
    let pushed = async {
        let mut replies = client.push(futures::stream::iter([request])).await?.into_inner();
        let reply = replies.message().await?;
        reply.map(drop).ok_or_else(|| Failed("the stream has ended".into()))
    };
    timeout(ANSWER_WITHIN, pushed).await?
}
