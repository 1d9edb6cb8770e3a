//! A client of the list workload, which records its operations.

use std::collections::BTreeMap;

use tokio_postgres::{Client, Error};

use crate::harness::sql;
use crate::history::{Key, List, Operation, Value};

/// The indexes of the documents; each entry contains the document's whole list.
pub(super) const INDEXES: [&str; 3] = ["by_last", "by_length", "by_group"];

/// Creates the buckets and their indexes. Each write of a document moves its entries in the
/// indexes, and in one index to other slices.
pub(super) async fn create(client: &Client, buckets: Key, replicas: u32) {
    let with = |slices: u32| format!("WITH (slices = {slices}, replicas = {replicas})");
    let (one, other) = (with(5), with(3));
    for n in 0..buckets {
        let statements = format!(
            "CREATE BUCKET lists{n};
             CREATE INDEX by_last{n} ON lists{n} (last::int8) INCLUDE (list)
               PARTITION BY HASH (last) {one};
             CREATE INDEX by_length{n} ON lists{n} (length::int8 DESC) INCLUDE (list) {other};
             CREATE INDEX by_group{n} ON lists{n} (grp::int8, length::int8) INCLUDE (list) {other}"
        );
        sql::run(client, &statements).await;
    }
}

/// The state of a client's transaction.
pub(super) struct Session<'c> {
    client: &'c Client,
    keys: Key,
    /// The number of buckets that contain the documents.
    buckets: Key,
    pub(super) operations: Vec<Operation>,
    /// The number of operations before each savepoint.
    saved: Vec<usize>,
}

impl<'c> Session<'c> {
    pub(super) fn new(client: &'c Client, (keys, buckets): (Key, Key)) -> Self {
        Self { client, keys, buckets, operations: Vec::new(), saved: Vec::new() }
    }

    /// Reads documents by id.
    pub(super) async fn read(&mut self, keys: &[Key]) -> Result<(), Error> {
        let field = |document: &str| {
            let document: serde_json::Value = serde_json::from_str(document).expect("JSON");
            document["list"].as_str().expect("a list").to_owned()
        };
        for n in self.in_turn(keys) {
            let keys: Vec<_> = keys.iter().copied().filter(|key| key % self.buckets == n).collect();
            let ids: Vec<_> = keys.iter().map(|key| format!("'{key}'")).collect();
            let read = format!("SELECT id, doc FROM lists{n} WHERE id IN ({})", ids.join(","));
            let found = self.found(&read, &field).await?;
            self.note_reads(&keys, &found);
        }
        Ok(())
    }

    /// Returns the buckets of some documents, in the order of these documents.
    fn in_turn(&self, keys: &[Key]) -> Vec<Key> {
        let mut buckets: Vec<Key> = Vec::new();
        for n in keys.iter().map(|key| key % self.buckets) {
            if !buckets.contains(&n) {
                buckets.push(n);
            }
        }
        buckets
    }

    /// Reads all documents of a bucket by an index.
    pub(super) async fn scan_one(&mut self, index: &str, bucket: Key) -> Result<(), Error> {
        let select = format!("SELECT id, list FROM {index}{bucket}");
        let found = self.found(&select, str::to_owned).await?;
        let keys = (0..self.keys).filter(|key| key % self.buckets == bucket);
        self.note_reads(&keys.collect::<Vec<_>>(), &found);
        Ok(())
    }

    /// Reads all documents by an index, bucket by bucket, beginning with that of `first`.
    pub(super) async fn scan(&mut self, index: &str, first: Key) -> Result<(), Error> {
        for n in 0..self.buckets {
            self.scan_one(index, (first + n) % self.buckets).await?;
        }
        Ok(())
    }

    /// Reads some of the documents by a range of an index.
    pub(super) async fn scan_group(&mut self, group: Key) -> Result<(), Error> {
        for n in 0..self.buckets {
            let select =
                format!("SELECT id, list FROM by_group{n} WHERE grp = {group} ORDER BY length");
            let found = self.found(&select, str::to_owned).await?;
            let is_wanted = |key: &Key| key % GROUPS == group && key % self.buckets == n;
            let keys: Vec<Key> = (0..self.keys).filter(is_wanted).collect();
            self.note_reads(&keys, &found);
        }
        Ok(())
    }

    async fn found(
        &self,
        select: &str,
        list: impl Fn(&str) -> String,
    ) -> Result<BTreeMap<Key, List>, Error> {
        let mut found = BTreeMap::new();
        for row in sql::simple(self.client, select).await? {
            let [Some(id), Some(text)] = &row[..] else { panic!("{select}: {row:?}") };
            let key: Key = id.parse().expect("a key");
            let values = list(text);
            let values = values.split(',').map(|value| value.parse().expect("a value"));
            let twice = found.insert(key, values.collect());
            assert!(twice.is_none(), "{select}: document {key} is there twice");
        }
        Ok(found)
    }

    fn note_reads(&mut self, keys: &[Key], found: &BTreeMap<Key, List>) {
        assert!(found.keys().all(|key| keys.contains(key)), "{keys:?} were asked for: {found:?}");
        let read = |key: &Key| {
            let list = found.get(key).cloned().unwrap_or_default();
            Operation::Read { key: *key, list }
        };
        self.operations.extend(keys.iter().map(read));
    }

    /// Returns the list that the last read of a document has returned.
    fn last_read(&self, of: Key) -> List {
        let read = |operation: &Operation| match operation {
            Operation::Read { key, list } if *key == of => Some(list.clone()),
            _ => None,
        };
        self.operations.iter().rev().find_map(read).unwrap_or_default()
    }

    /// Appends a value to the list of a document that was read last.
    pub(super) async fn append(&mut self, key: Key, value: Value) -> Result<(), Error> {
        let mut list = self.last_read(key);
        list.push(value);
        let insert = format!(
            "INSERT INTO lists{} (id, doc) VALUES ('{key}', '{}')
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
            key % self.buckets,
            document(key, &list)
        );
        self.client.batch_execute(&insert).await?;
        self.operations.push(Operation::Write { key, list });
        Ok(())
    }

    /// Inserts a document that exists, so that the statement fails, and rolls back to a savepoint
    /// before it.
    pub(super) async fn insert_again(&mut self, key: Key) -> Result<(), Error> {
        let list = self.last_read(key);
        if list.is_empty() {
            return Ok(());
        }
        self.client.batch_execute("SAVEPOINT again").await?;
        let insert = format!(
            "INSERT INTO lists{} (id, doc) VALUES ('{key}', '{}')",
            key % self.buckets,
            document(key, &list)
        );
        match self.client.batch_execute(&insert).await {
            Ok(()) => panic!("document {key} was read, and is inserted again"),
            Err(error) if sql::state_of(&error) == "23505" => {}
            Err(error) => return Err(error),
        }
        self.client.batch_execute("ROLLBACK TO again; RELEASE again").await
    }

    pub(super) async fn save(&mut self) -> Result<(), Error> {
        self.client.batch_execute(&format!("SAVEPOINT s{}", self.saved.len())).await?;
        self.saved.push(self.operations.len());
        Ok(())
    }

    /// Rolls back to a random savepoint, if there is one.
    pub(super) async fn back(&mut self, random: &mut fastrand::Rng) -> Result<(), Error> {
        if self.saved.is_empty() {
            return Ok(());
        }
        let at = random.usize(0..self.saved.len());
        self.client.batch_execute(&format!("ROLLBACK TO s{at}")).await?;
        self.saved.truncate(at + 1);
        self.operations.push(Operation::Back(self.saved[at]));
        Ok(())
    }
}

/// The number of groups of documents.
pub(super) const GROUPS: Key = 3;

fn document(key: Key, list: &List) -> String {
    let last = list.last().copied().unwrap_or_default();
    let values: Vec<String> = list.iter().map(Value::to_string).collect();
    format!(
        "{{\"last\":{last},\"length\":{},\"grp\":{},\"list\":\"{}\"}}",
        list.len(),
        key % GROUPS,
        values.join(",")
    )
}
