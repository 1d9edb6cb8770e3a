//! The scanners, which read whole indexes and ranges, ordered and unordered, over SQL and gRPC. The
//! judge checks each scan.

use std::sync::Arc;
use std::time::Duration;

use proto::grpc::ScanRequest;
use proto::grpc::query_client::QueryClient;
use tokio::time::timeout;
use tokio_postgres::Client;
use tonic::transport::Channel;

use super::clients::{ANSWER_WITHIN, Failed, PAUSE, Shared, Tasks, execute, row, select};
use super::documents::{INDEXES, Range, TestIndex};
use super::history::{Row, Scan, Tick};

/// The number of scanners over SQL; as many use gRPC.
const EACH: usize = 2;
/// The range of pauses of a scanner after a scan, in milliseconds.
const REST_MS: std::ops::Range<u64> = 5..60;
/// The statement that sets the time-out of scans that wait for an epoch or a member.
pub const SETTINGS: &str = "SET statement_timeout = '12s'";

/// Starts all scanners.
pub fn begin(shared: &Arc<Shared>, tasks: &mut Tasks) {
    for number in 0..EACH * 2 {
        let random = fastrand::Rng::with_seed(shared.seed ^ (number as u64 + 100) << 32);
        let scanner = Scanner { shared: Arc::clone(shared), random, router: number };
        match number % 2 {
            0 => tasks.run(scanner.by_sql()),
            _ => tasks.run(scanner.by_grpc()),
        }
    }
}

struct Scanner {
    shared: Arc<Shared>,
    random: fastrand::Rng,
    router: usize,
}

/// The parameters of a scan: index, range, order and consistency.
#[derive(Clone, Copy)]
struct ScanChoice {
    index: &'static TestIndex,
    range: Range,
    request_plus: bool,
    ordered: bool,
    begun: Tick,
}

impl ScanChoice {
    fn consistency(&self) -> &'static str {
        if self.request_plus { "request_plus" } else { "any" }
    }

    fn scan<'a>(&self, end: Tick, rows: &'a [Row]) -> Scan<'a> {
        let not_before = self.request_plus.then_some(self.begun);
        Scan { index: self.index, range: self.range, not_before, end, ordered: self.ordered, rows }
    }

    fn filter(&self) -> String {
        self.range.map(|(from, to)| format!("n BETWEEN {from} AND {to}")).unwrap_or_default()
    }

    fn select(&self) -> String {
        let mut select = self.index.select();
        if self.range.is_some() {
            select += &format!(" WHERE {}", self.filter());
        }
        if self.ordered {
            select += &self.index.order_by();
        }
        select
    }
}

impl Scanner {
    fn wish(&mut self) -> ScanChoice {
        let index = &INDEXES[self.random.usize(..INDEXES.len())];
        let from = self.random.i64(0..1000);
        let range = (self.random.u32(..3) == 0).then(|| (from, from + self.random.i64(0..300)));
        let (request_plus, ordered) = (self.random.bool(), self.random.bool());
        ScanChoice { index, range, request_plus, ordered, begun: self.shared.history().tick() }
    }

    /// Counts a failed scan. The failure is a violation if the dead leading coordinator was the
    /// only fault.
    fn refused(&mut self, was_failover: bool, wish: &str, error: &Failed) {
        self.router += 1;
        let interrupted = was_failover && self.shared.is_failover();
        self.shared.say(|| {
            format!("scanner: {wish}: {error}{}", if interrupted { " (failover)" } else { "" })
        });
        self.shared.report(|report| match interrupted {
            true => report.scans_interrupted_by_failover += 1,
            false => report.scans_refused += 1,
        });
    }

    fn done(&self, was_failover: bool) {
        if was_failover {
            self.shared.report(|report| report.scans_in_failover += 1);
        }
    }

    async fn rest(&mut self) {
        tokio::time::sleep(Duration::from_millis(self.random.u64(REST_MS))).await;
    }

    async fn by_sql(mut self) {
        let mut session: Option<Client> = None;
        while self.shared.is_running() {
            let Some(client) = &session else {
                session = match self.shared.sql(self.router).await {
                    Ok(client) => execute(&client, SETTINGS).await.ok().map(|()| client),
                    Err(_) => None,
                };
                if session.is_none() {
                    self.router += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            };
            let was_failover = self.shared.is_failover();
            let wish = self.wish();
            let asked = match self.random.u32(..4) {
                0 => self.two_at_one_moment(client, wish).await,
                _ => self.one(client, wish).await,
            };
            match asked {
                Ok(()) => self.done(was_failover),
                Err(error) => {
                    self.refused(was_failover, &wish.select(), &error);
                    session = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
            self.rest().await;
        }
    }

    async fn one(&self, client: &Client, wish: ScanChoice) -> Result<(), Failed> {
        execute(client, &format!("SET consistency = '{}'", wish.consistency())).await?;
        let rows = select(client, &wish.select()).await?;
        let end = self.shared.history().tick();
        // SQL promises no order among equal keys.
        let mut scan = wish.scan(end, &rows);
        scan.ordered = false;
        self.shared.judge(&scan);
        self.judge_keys(wish, &rows);
        Ok(())
    }

    /// Runs two scans in one transaction, which must read one epoch.
    async fn two_at_one_moment(&mut self, client: &Client, wish: ScanChoice) -> Result<(), Failed> {
        let other = &INDEXES[self.random.usize(..INDEXES.len())];
        let other = ScanChoice { index: other, range: None, ordered: false, ..wish };
        let begin = format!("SET consistency = '{}'; BEGIN READ ONLY", wish.consistency());
        execute(client, &begin).await?;
        let left = select(client, &wish.select()).await?;
        let right = select(client, &other.select()).await?;
        execute(client, "COMMIT").await?;
        let end = self.shared.history().tick();
        let unordered =
            |scan: Scan<'_>, shared: &Shared| shared.judge(&Scan { ordered: false, ..scan });
        let left = unordered(wish.scan(end, &left), &self.shared);
        let right = unordered(other.scan(end, &right), &self.shared);
        let apart = self.shared.history().judge_together(&left, &right);
        for told in apart {
            self.shared.report(|report| report.torn += 1);
            self.shared.violation(told);
        }
        Ok(())
    }

    /// Checks the order of the rows by the keys; the entries were judged before.
    fn judge_keys(&self, wish: ScanChoice, rows: &[Row]) {
        if !wish.ordered {
            return;
        }
        let position = wish.index.columns.iter().position(|column| *column == "n");
        let Some(0) = position else { return };
        let n = |row: &Row| row.keys[0].as_ref().and_then(|text| text.parse::<i64>().ok());
        let in_order = match wish.index.descending[0] {
            true => rows.is_sorted_by(|a, b| n(a) >= n(b)),
            false => rows.is_sorted_by(|a, b| n(a) <= n(b)),
        };
        if !in_order {
            self.shared.report(|report| report.misordered += 1);
            self.shared.violation(format!("{}: rows are not in its order", wish.select()));
        }
    }

    async fn by_grpc(mut self) {
        let mut channel: Option<Channel> = None;
        while self.shared.is_running() {
            let Some(open) = &channel else {
                channel = self.shared.grpc(self.router).await.ok();
                if channel.is_none() {
                    self.router += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            };
            let was_failover = self.shared.is_failover();
            let wish = self.wish();
            match self.one_by_grpc(open.clone(), wish).await {
                Ok(()) => self.done(was_failover),
                Err(error) => {
                    self.refused(was_failover, &format!("gRPC {}", wish.select()), &error);
                    channel = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
            self.rest().await;
        }
    }

    async fn one_by_grpc(&self, channel: Channel, wish: ScanChoice) -> Result<(), Failed> {
        let (epoch, rows) = scan_by_grpc(channel, request(&wish)).await?;
        let end = self.shared.history().tick();
        self.shared.judge(&wish.scan(end, &rows));
        if wish.range.is_none() && wish.ordered {
            self.shared.judge_epoch(wish.index.name, epoch, &rows);
        }
        Ok(())
    }
}

fn request(wish: &ScanChoice) -> ScanRequest {
    let columns = ["id", "v"].iter().chain(wish.index.columns);
    ScanRequest {
        index: wish.index.name.into(),
        columns: columns.map(|column| (*column).to_owned()).collect(),
        r#where: wish.filter(),
        consistency: wish.consistency().into(),
        unordered: !wish.ordered,
        ..ScanRequest::default()
    }
}

/// Runs a scan to its end; returns its epoch and its rows.
async fn scan_by_grpc(channel: Channel, request: ScanRequest) -> Result<(u64, Vec<Row>), Failed> {
    let mut client = QueryClient::new(channel);
    let all = async {
        let mut replies = client.scan(request).await?.into_inner();
        let (mut epoch, mut rows) = (0, Vec::new());
        while let Some(reply) = replies.message().await? {
            epoch = reply.epoch;
            for values in reply.rows {
                rows.push(row(values.values.into_iter().map(|value| value.text).collect())?);
            }
        }
        Ok((epoch, rows))
    };
    timeout(ANSWER_WITHIN, all).await?
}
