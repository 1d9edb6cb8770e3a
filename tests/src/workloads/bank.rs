//! A workload of transfers between accounts in two buckets; some accounts are closed and opened
//! again. The sum of all balances must never change, and in each transaction all indexes and the
//! reads by id must return equal accounts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio_postgres::{Client, Error};

use super::Faults;
use crate::harness::{connect, eventually, sql};

/// The number of accounts, so small that transfers conflict.
const ACCOUNTS: u32 = 16;
const BRANCHES: u32 = 4;
/// The buckets; the parity of an account's number determines its bucket.
const BUCKETS: [&str; 2] = ["bank", "savings"];
/// The initial balance of each account.
const BALANCE: i64 = 100;
const TOTAL: i64 = ACCOUNTS as i64 * BALANCE;

/// The balances of the open accounts.
type Accounts = BTreeMap<u32, i64>;

/// The workload, which runs until it is stopped.
pub struct Bank {
    address: SocketAddr,
    faults: Faults,
    seed: u64,
    is_stopped: AtomicBool,
    committed: AtomicU64,
    refused: AtomicU64,
}

impl Bank {
    /// Creates the workload with its bucket and indexes in a cluster.
    pub async fn create(address: SocketAddr, replicas: u32, faults: Faults, seed: u64) -> Self {
        let client = connect(address).await;
        let with = format!("WITH (slices = 4, replicas = {replicas})");
        for (n, bucket) in (0..).zip(BUCKETS) {
            let statements = format!(
                "CREATE BUCKET {bucket};
                 CREATE INDEX by_balance_{bucket} ON {bucket} (balance::int8) {with};
                 CREATE INDEX by_branch_{bucket} ON {bucket} (branch::int8, balance::int8)
                   PARTITION BY HASH (branch) {with}"
            );
            sql::run(&client, &statements).await;
            let all: Vec<_> = (n..ACCOUNTS).step_by(2).map(|id| values(id, BALANCE)).collect();
            let insert = format!("INSERT INTO {bucket} (id, doc) VALUES {}", all.join(","));
            sql::run(&client, &insert).await;
        }
        // Read-only transactions of the default consistency may read a moment that is a second old. A session that has written, or that has
        // just read another bucket, requires the present: so each check uses a new session.
        eventually("a moment of the default consistency has all accounts", || async move {
            let client = connect(address).await;
            sql::run(&client, "BEGIN READ ONLY").await;
            for bucket in BUCKETS {
                for index in ["by_balance", "by_branch"] {
                    let select = format!("SELECT count(*) FROM {index}_{bucket}");
                    let count = sql::simple(&client, &select).await.ok()?.remove(0).remove(0);
                    (count == Some((ACCOUNTS / 2).to_string())).then_some(())?;
                }
            }
            Some(())
        })
        .await;
        let (committed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        let is_stopped = AtomicBool::new(false);
        Self { address, faults, seed, is_stopped, committed, refused }
    }

    /// Lets the clients end after their present transactions.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the numbers of commits and of conflicts.
    pub fn counts(&self) -> (u64, u64) {
        (self.committed.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }

    /// Runs some clients until the workload is stopped.
    pub async fn run(&self, clients: u64) {
        futures::future::join_all((0..clients).map(|number| self.client(number))).await;
    }

    async fn client(&self, number: u64) {
        let client = connect(self.address).await;
        let mut random = fastrand::Rng::with_seed(self.seed * 1000 + number);
        while !self.is_stopped.load(Ordering::Relaxed) {
            let begin = if random.u8(0..4) == 0 { "BEGIN READ ONLY" } else { "BEGIN" };
            sql::run(&client, begin).await;
            let worked = match begin {
                "BEGIN" => transfer(&client, &mut random).await,
                _ => check_sums(&client, &mut random).await.map(|_| ()),
            };
            if let Err(error) = worked {
                self.faults.check(&sql::state_of(&error), "a statement of a transaction");
                sql::run(&client, "ROLLBACK").await;
                continue;
            }
            match &*sql::sqlstate(&client, "COMMIT").await {
                "" => drop(self.committed.fetch_add(1, Ordering::Relaxed)),
                "40001" => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
                other => self.faults.check(other, "COMMIT"),
            }
        }
    }

    /// Checks the sums at the end; returns the numbers of commits and of conflicts.
    pub async fn judge(self) -> (u64, u64) {
        let client = connect(self.address).await;
        sql::run(&client, "BEGIN").await;
        let random = &mut fastrand::Rng::with_seed(self.seed);
        check_sums(&client, random).await.expect("the accounts");
        sql::run(&client, "COMMIT").await;
        (self.committed.into_inner(), self.refused.into_inner())
    }
}

/// The bucket of an account.
fn bucket_of(id: u32) -> &'static str {
    BUCKETS[id as usize % BUCKETS.len()]
}

/// Returns an account as a row of an INSERT.
fn values(id: u32, balance: i64) -> String {
    let branch = id % BRANCHES;
    format!("('{id}', '{{\"branch\":{branch},\"balance\":{balance}}}')")
}

/// Transfers an amount; an account whose balance becomes zero is closed, and a closed one is
/// opened.
async fn transfer(client: &Client, random: &mut fastrand::Rng) -> Result<(), Error> {
    let accounts = match random.bool() {
        true => check_sums(client, random).await?,
        false => by_index(client, "by_branch").await?,
    };
    let open: Vec<u32> = accounts.keys().copied().collect();
    let from = open[random.usize(0..open.len())];
    let to = (from + random.u32(1..ACCOUNTS)) % ACCOUNTS;
    let amount = random.i64(1..=accounts[&from]);
    let taken = match accounts[&from] - amount {
        0 => format!("DELETE FROM {} WHERE id = '{from}'", bucket_of(from)),
        left => replace(from, left),
    };
    let given = match accounts.get(&to) {
        None => format!("INSERT INTO {} (id, doc) VALUES {}", bucket_of(to), values(to, amount)),
        Some(balance) => replace(to, balance + amount),
    };
    client.batch_execute(&taken).await?;
    if random.u8(0..3) == 0 {
        client.batch_execute(&format!("SAVEPOINT s; {}", replace(to, 1_000_000))).await?;
        client.batch_execute("ROLLBACK TO s").await?;
    }
    client.batch_execute(&given).await?;
    if random.bool() {
        check_sums(client, random).await?;
    }
    Ok(())
}

fn replace(id: u32, balance: i64) -> String {
    let (values, bucket) = (values(id, balance), bucket_of(id));
    format!(
        "INSERT INTO {bucket} (id, doc) VALUES {values} ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
    )
}

/// Reads all accounts by each index and by id, in random order, and compares them. Panics if they
/// differ or their sum is wrong.
async fn check_sums(client: &Client, random: &mut fastrand::Rng) -> Result<Accounts, Error> {
    let mut ways = [0, 1, 2, 3];
    random.shuffle(&mut ways);
    let mut first: Option<Accounts> = None;
    for way in ways {
        let accounts = match way {
            0 => by_id(client).await?,
            1 => by_index(client, "by_balance").await?,
            2 => by_index(client, "by_branch").await?,
            _ => {
                let mut sum = 0;
                for bucket in BUCKETS {
                    let select = format!("SELECT sum(balance) FROM by_balance_{bucket}");
                    let found = sql::simple(client, &select).await?.remove(0).remove(0);
                    sum += found.map_or(0, |found| found.parse::<i64>().expect("a sum"));
                }
                assert_eq!(sum, TOTAL, "ways {ways:?}");
                continue;
            }
        };
        assert_eq!(accounts.values().sum::<i64>(), TOTAL, "way {way}: {accounts:?}");
        let known = first.get_or_insert_with(|| accounts.clone());
        assert_eq!(*known, accounts, "ways {ways:?}, at {way}");
    }
    Ok(first.unwrap_or_default())
}

async fn by_id(client: &Client) -> Result<Accounts, Error> {
    let balance = |text: &str| {
        let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
        document["balance"].as_i64().expect("a balance")
    };
    let mut all = Accounts::new();
    for (n, bucket) in (0..).zip(BUCKETS) {
        let ids: Vec<_> = (n..ACCOUNTS).step_by(2).map(|id| format!("'{id}'")).collect();
        let select = format!("SELECT id, doc FROM {bucket} WHERE id IN ({})", ids.join(","));
        all.extend(accounts(client, &select, balance).await?);
    }
    Ok(all)
}

async fn by_index(client: &Client, index: &str) -> Result<Accounts, Error> {
    let balance = |text: &str| text.parse().expect("a balance");
    let mut all = Accounts::new();
    for bucket in BUCKETS {
        let select = format!("SELECT id, balance FROM {index}_{bucket}");
        all.extend(accounts(client, &select, balance).await?);
    }
    Ok(all)
}

async fn accounts(
    client: &Client,
    select: &str,
    balance: impl Fn(&str) -> i64,
) -> Result<Accounts, Error> {
    let mut accounts = Accounts::new();
    for row in sql::simple(client, select).await? {
        let [Some(id), Some(text)] = &row[..] else { panic!("{select}: {row:?}") };
        let twice = accounts.insert(id.parse().expect("an account"), balance(text));
        assert!(twice.is_none(), "{select}: account {id} is there twice");
    }
    Ok(accounts)
}
