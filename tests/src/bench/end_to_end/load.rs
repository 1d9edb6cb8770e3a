//! Clients on one thread, each of which sends prepared statements one after another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::TryStreamExt;
use futures::future::try_join_all;
use tokio::sync::oneshot;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use super::super::Outcome;
use super::super::workload::mix;
use super::peers::{Parameter, Target};

/// A request of a client: an execution of the prepared statement.
pub struct Request {
    /// The parameters of the statement.
    pub parameters: Vec<Parameter>,
    /// The number of rows that the answer must have.
    pub rows: u64,
}

/// A function that draws a request.
pub type Draw = Arc<dyn Fn(&mut Rng) -> Request + Send + Sync>;

/// The work of some clients.
#[derive(Clone)]
pub struct Load {
    /// The statement of all requests.
    pub statement: String,
    /// The first statement of each session; empty for none.
    pub session: &'static str,
    /// The function that draws the parameters of a request.
    pub draw: Draw,
    /// The number of clients, each with a separate connection.
    pub clients: u64,
    /// The time for which requests are sent.
    pub time: Duration,
    /// The number of requests per second of all clients together; with `None` each client sends the
    /// next request at once.
    pub per_s: Option<f64>,
    /// The number of requests of each client before the measurement.
    pub warm_up: u64,
    /// The seed of the requests.
    pub seed: u64,
}

/// The measurements of a finished load.
#[derive(Debug)]
pub struct Done {
    /// The time from the first request to the last answer.
    pub elapsed: Duration,
    /// The duration of each request, in milliseconds.
    pub ms: Vec<f64>,
    /// The server's CPU time before the first request, in microseconds.
    pub cpu_us_before: f64,
    /// The server's CPU time after the last answer, in microseconds.
    pub cpu_us_after: f64,
}

impl Done {
    /// Returns the number of requests per second.
    pub fn per_s(&self) -> f64 {
        self.ms.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the CPU time of the server for each request, in microseconds.
    pub fn cpu_us_each(&self) -> f64 {
        (self.cpu_us_after - self.cpu_us_before) / self.ms.len() as f64
    }
}

/// Runs a load against a server, on a separate thread, so that the clients' work is the same for all servers and not
/// mixed with other work of the bench.
pub async fn run(target: &Target, load: Load) -> Outcome<Done> {
    let (tell, told) = oneshot::channel();
    let target = target.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let done = match runtime {
            Ok(runtime) => runtime.block_on(load.drive(&target)),
            Err(error) => Err(error.into()),
        };
        // The receiver is dropped when the bench was interrupted.
        let _interrupted = tell.send(done);
    });
    told.await?
}

impl Load {
    async fn drive(&self, target: &Target) -> Outcome<Done> {
        let mut sessions = Vec::new();
        for n in 0..self.clients {
            let client = target.connect().await?;
            if !self.session.is_empty() {
                client.batch_execute(self.session).await?;
            }
            let statement = client.prepare(&self.statement).await;
            let statement = statement.map_err(|error| self.failed(&error))?;
            sessions.push(Session {
                n,
                client,
                statement,
                rng: Rng::with_seed(mix(self.seed) ^ mix(n)),
            });
        }
        try_join_all(sessions.iter_mut().map(|session| session.warm_up(self))).await?;
        let cpu_us_before = target.processes.cpu_us()?;
        let begun = Instant::now();
        let ms = try_join_all(sessions.iter_mut().map(|session| session.work(self, begun))).await?;
        let elapsed = begun.elapsed();
        let cpu_us_after = target.processes.cpu_us()?;
        let ms = ms.concat();
        if ms.is_empty() {
            return Err(format!("{}: no request in {:?}", self.statement, self.time).into());
        }
        Ok(Done { elapsed, ms, cpu_us_before, cpu_us_after })
    }

    /// Returns the time, since the beginning, at which a client sends a request; `None` for at
    /// once.
    fn due(&self, client: u64, request: u64) -> Option<Duration> {
        let number = request * self.clients + client;
        Some(Duration::from_secs_f64(number as f64 / self.per_s?))
    }

    fn failed(&self, error: &tokio_postgres::Error) -> String {
        match error.as_db_error() {
            Some(told) => format!("{}: {told}", self.statement),
            None => format!("{}: {error}", self.statement),
        }
    }
}

/// One client with its connection and statements.
struct Session {
    n: u64,
    client: Client,
    statement: Statement,
    rng: Rng,
}

impl Session {
    async fn warm_up(&mut self, load: &Load) -> Outcome<()> {
        for _ in 0..load.warm_up {
            self.request(load).await?;
        }
        Ok(())
    }

    /// Sends requests for the load's time; returns the duration of each in milliseconds.
    async fn work(&mut self, load: &Load, begun: Instant) -> Outcome<Vec<f64>> {
        let mut ms = Vec::new();
        for request in 0.. {
            if let Some(due) = load.due(self.n, request) {
                tokio::time::sleep_until((begun + due.min(load.time)).into()).await;
            }
            let sent = Instant::now();
            if sent >= begun + load.time {
                break;
            }
            self.request(load).await?;
            ms.push(sent.elapsed().as_secs_f64() * 1e3);
        }
        Ok(ms)
    }

    /// Sends a request and reads its rows.
    async fn request(&mut self, load: &Load) -> Outcome<()> {
        let Request { parameters, rows } = (load.draw)(&mut self.rng);
        let borrowed = parameters.iter().map(|parameter| &**parameter as &(dyn ToSql + Sync));
        let asked = self.client.query_raw(&self.statement, borrowed).await;
        let answer = asked.map_err(|error| load.failed(&error))?;
        let mut answer = std::pin::pin!(answer);
        let mut came = 0;
        while answer.try_next().await.map_err(|error| load.failed(&error))?.is_some() {
            came += 1;
        }
        if came != rows {
            let statement = &load.statement;
            let what = format!("{statement} with {parameters:?}: {came} rows instead of {rows}");
            return Err(what.into());
        }
        Ok(())
    }
}
