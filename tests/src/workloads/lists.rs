//! A workload of transactions that read lists and append to them, whose history is judged.
//!
//! Each transaction reads documents by id and by scans of whole indexes and ranges, appends values
//! to the lists that it has read, rolls back to savepoints, and commits or not. Some are read-only,
//! and some are single statements outside of a transaction.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio_postgres::{Client, Error};

use super::Faults;
use super::session::{GROUPS, INDEXES, Session, create};
use crate::harness::{connect, sql};
use crate::history::{Key, Kind, Operation, Outcome, Present, Transaction, Value, check};

/// The number of documents, so small that transactions conflict.
const KEYS: Key = 10;
/// The maximum number of values that a client writes.
const VALUES_MAX: Value = 1_000_000;

/// The workload, which runs until it is stopped.
pub struct Lists {
    address: SocketAddr,
    faults: Faults,
    /// The buckets over which the documents are spread.
    buckets: Key,
    /// False to leave out BEGIN and COMMIT.
    has_transactions: bool,
    seed: u64,
    /// A counter that orders the operations of all clients.
    moments: AtomicU64,
    is_stopped: AtomicBool,
    history: Mutex<Vec<Transaction>>,
}

/// The numbers of transactions that ended in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The number of committed transactions.
    pub committed: usize,
    /// The number of transactions that were rolled back or in conflict.
    pub aborted: usize,
    /// The number of transactions whose commit had no definite answer.
    pub unknown: usize,
}

impl Lists {
    /// Creates the workload with its buckets and indexes in a cluster.
    pub async fn create(
        address: SocketAddr,
        (buckets, replicas): (u32, u32),
        faults: Faults,
        seed: u64,
    ) -> Self {
        create(&connect(address).await, buckets, replicas).await;
        let (moments, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        let (has_transactions, history) = (true, Mutex::default());
        Self { address, faults, buckets, has_transactions, seed, moments, is_stopped, history }
    }

    /// Returns the workload with statements outside of transactions. Its history must have
    /// anomalies, which proves that the workload provokes them.
    pub fn without_transactions(self) -> Self {
        Self { has_transactions: false, ..self }
    }

    /// Lets the clients end after their present transactions.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the numbers of ended transactions.
    pub fn counts(&self) -> Ended {
        counts(&self.history.lock().expect("no test has panicked"))
    }

    /// Runs some clients until the workload is stopped.
    pub async fn run(&self, clients: u64) {
        futures::future::join_all((0..clients).map(|number| self.client(number))).await;
    }

    async fn client(&self, number: u64) {
        let client = connect(self.address).await;
        let mut random = fastrand::Rng::with_seed(self.seed * 1000 + number);
        let mut value = number * VALUES_MAX;
        while !self.is_stopped.load(Ordering::Relaxed) {
            match random.u8(0..10) {
                0 => self.statement(&client, &mut random).await,
                1 => self.read_only(&client, &mut random).await,
                _ => self.transaction(&client, &mut random, &mut value).await,
            }
        }
    }

    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    fn record(&self, begun: u64, reads_present: bool, session: Session<'_>, outcome: Outcome) {
        let (ended, operations) = (self.moment(), session.operations);
        let present = if reads_present { self.present(&operations) } else { Present::OfNone };
        let transaction = Transaction { begun, ended, present, operations, outcome };
        self.history.lock().expect("no test has panicked").push(transaction);
    }

    /// Returns the keys for which a transaction that may write must read the newest versions. While
    /// projectors are away these are only the keys of the bucket of its first read: another bucket,
    /// whose projector has not answered in time, is read at an older epoch (docs/sql.md,
    /// "Transactions").
    fn present(&self, operations: &[Operation]) -> Present {
        let first = operations.iter().find_map(|operation| match operation {
            Operation::Read { key, .. } => Some(key % self.buckets),
            _ => None,
        });
        match (self.faults, first) {
            (Faults::Restarts, Some(bucket)) => Present::OfBucket { bucket, buckets: self.buckets },
            _ => Present::OfAll,
        }
    }

    /// Executes one scan outside of a transaction.
    async fn statement(&self, client: &Client, random: &mut fastrand::Rng) {
        let (begun, mut session) = (self.moment(), Session::new(client, (KEYS, self.buckets)));
        let index = INDEXES[random.usize(0..INDEXES.len())];
        let scanned = session.scan_one(index, random.u32(0..self.buckets)).await;
        if let Err(error) = scanned {
            self.faults.check(&sql::state_of(&error), "a scan");
        }
        self.record(begun, false, session, Outcome::Committed);
    }

    /// Executes a read-only transaction, which may read older versions.
    async fn read_only(&self, client: &Client, random: &mut fastrand::Rng) {
        let (begun, mut session) = (self.moment(), Session::new(client, (KEYS, self.buckets)));
        sql::run(client, "BEGIN READ ONLY").await;
        // A first read by id is of the present.
        let scans_first = random.bool();
        let read = async {
            if scans_first {
                session.scan(INDEXES[random.usize(0..INDEXES.len())], random.u32(0..2)).await?;
            }
            for _ in 0..random.usize(1..3) {
                self.read(&mut session, random).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = read.await {
            self.faults.check(&sql::state_of(&error), "a read-only transaction");
        }
        sql::run(client, "COMMIT").await;
        self.record(begun, false, session, Outcome::Committed);
    }

    async fn read(
        &self,
        session: &mut Session<'_>,
        random: &mut fastrand::Rng,
    ) -> Result<(), Error> {
        match random.u8(0..4) {
            0 => session.read(&[random.u32(0..KEYS)]).await,
            1 => {
                let one = random.u32(0..KEYS);
                session.read(&[one, (one + random.u32(1..KEYS)) % KEYS]).await
            }
            2 => session.scan_group(random.u32(0..GROUPS)).await,
            _ => session.scan(INDEXES[random.usize(0..INDEXES.len())], random.u32(0..2)).await,
        }
    }

    /// Executes a transaction that writes.
    async fn transaction(&self, client: &Client, random: &mut fastrand::Rng, value: &mut Value) {
        let (begun, mut session) = (self.moment(), Session::new(client, (KEYS, self.buckets)));
        if self.has_transactions {
            sql::run(client, "BEGIN").await;
        }
        let worked = async {
            for _ in 0..random.usize(1..5) {
                self.operation(&mut session, random, value).await?;
            }
            Ok::<_, Error>(())
        };
        let worked = worked.await;
        if let Err(error) = &worked {
            self.faults.check(&sql::state_of(error), "a statement of a transaction");
        }
        if !self.has_transactions {
            return self.record(begun, true, session, Outcome::Committed);
        }
        if worked.is_err() || random.u8(0..8) == 0 {
            sql::run(client, "ROLLBACK").await;
            return self.record(begun, true, session, Outcome::Aborted);
        }
        let state = sql::sqlstate(client, "COMMIT").await;
        let outcome = match &*state {
            "" => Outcome::Committed,
            "40001" => Outcome::Aborted,
            other => {
                self.faults.check(other, "COMMIT");
                Outcome::Unknown
            }
        };
        self.record(begun, true, session, outcome);
    }

    async fn operation(
        &self,
        session: &mut Session<'_>,
        random: &mut fastrand::Rng,
        value: &mut Value,
    ) -> Result<(), Error> {
        let key = random.u32(0..KEYS);
        match random.u8(0..10) {
            0..=2 if !self.has_transactions => Ok(()),
            0 => session.save().await,
            1 => session.back(random).await,
            2 => {
                session.read(&[key]).await?;
                session.insert_again(key).await
            }
            3..=4 => self.read(session, random).await,
            _ => {
                // The list is read in one of all ways, and often once more after the write.
                match random.u8(0..3) {
                    0 => session.read(&[key]).await?,
                    1 => session.scan_group(key % GROUPS).await?,
                    _ => {
                        session
                            .scan(INDEXES[random.usize(0..INDEXES.len())], random.u32(0..2))
                            .await?
                    }
                }
                *value += 1;
                session.append(key, *value).await?;
                if random.bool() { self.read(session, random).await } else { Ok(()) }
            }
        }
    }

    /// Reads everything by each index and by id, and returns the whole history.
    async fn end(self) -> Vec<Transaction> {
        let client = connect(self.address).await;
        sql::run(&client, "SET consistency = 'request_plus'").await;
        let all: Vec<Key> = (0..KEYS).collect();
        let (begun, mut session) = (self.moment(), Session::new(&client, (KEYS, self.buckets)));
        sql::run(&client, "BEGIN").await;
        session.read(&all).await.expect("all documents");
        for index in INDEXES {
            session.scan(index, 0).await.expect("all entries");
        }
        sql::run(&client, "COMMIT").await;
        self.record(begun, true, session, Outcome::Committed);
        self.history.into_inner().expect("no test has panicked")
    }

    /// Returns the kinds of anomalies in the history.
    pub async fn anomalies(self) -> BTreeSet<Kind> {
        check(&self.end().await).into_iter().map(|anomaly| anomaly.kind).collect()
    }

    /// Judges the history. Panics if it has an anomaly.
    pub async fn judge(self) -> Ended {
        let seed = self.seed;
        let history = self.end().await;
        let anomalies = check(&history);
        if let Some(first) = anomalies.first() {
            let involved = first.transactions.iter().map(|number| (number, &history[*number]));
            let involved: Vec<_> = involved.collect();
            let count = anomalies.len();
            panic!("seed {seed}: {count} anomalies; the first one: {first:#?}\n{involved:#?}");
        }
        counts(&history)
    }
}

fn counts(history: &[Transaction]) -> Ended {
    let count = |outcome| history.iter().filter(|one| one.outcome == outcome).count();
    Ended {
        committed: count(Outcome::Committed),
        aborted: count(Outcome::Aborted),
        unknown: count(Outcome::Unknown),
    }
}
