//! The end-to-end model test: random documents, writes, definitions and scans against a whole cluster over PostgreSQL's
//! protocol. Each answer is compared with a model (`tests::model`) that shares no code with the product.
//!
//! A round depends on one seed. A failing round prints the command that repeats it: `SEXTANT_TEST_SEED=n cargo test -p
//! tests --test clusters model::`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::sync::Arc;

use fastrand::Rng;
use tests::harness::{TestCluster, number_from_env, sql};
use tests::model::expr::Type;
use tests::model::generate;
use tests::model::index::Index;
use tests::model::json::Json;
use tests::model::scan::{Items, Scan};
use tests::model::text::quoted;
use tests::model::{Bucket, Document};
use tokio_postgres::Client;

/// The number of rounds; each takes some seconds.
const ROUNDS: u64 = 20;
/// The number of phases in a round, each of which writes and then scans.
const PHASES: usize = 7;
/// The number of scans of each index after each phase.
const SCANS: usize = 5;
/// The numbers of distinct document ids: a few, so that documents are often replaced, and many, so
/// that scans have several batches.
const IDS: [usize; 4] = [20, 90, 90, 600];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_the_model() {
    let cluster = TestCluster::start(1, 3).await;
    let first = number_from_env("SEXTANT_TEST_SEED", 1);
    let only = std::env::var("SEXTANT_TEST_SEED").is_ok();
    let rounds = number_from_env("SEXTANT_TEST_ROUNDS", if only { 1 } else { ROUNDS });
    let (mut scans, mut rows) = (0, 0);
    for seed in first..first + rounds {
        let mut round = Round::begin(&cluster, seed).await;
        round.run().await;
        scans += round.scans;
        rows += round.rows;
    }
    println!("{rounds} rounds, {scans} scans of {rows} rows agree with the model");
    assert!(rows > scans, "scans that find next to nothing prove nothing");
}

/// One round: the history of one bucket from one seed.
struct Round {
    seed: u64,
    rng: Rng,
    /// The session that writes and scans.
    client: Client,
    /// The session that defines indexes, and that writes while `client` reads in a transaction.
    other: Arc<Client>,
    name: String,
    ids: usize,
    bucket: Bucket,
    /// The indexes that serve scans.
    indexes: Vec<Index>,
    /// The indexes that are defined but not built.
    deferred: Vec<Index>,
    defined: usize,
    scans: usize,
    rows: usize,
    log: Vec<String>,
}

impl Round {
    async fn begin(cluster: &TestCluster, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let (client, other) = (cluster.sql().await, Arc::new(cluster.sql().await));
        let name = format!("b{seed}");
        let vbuckets = rng.u32(1..65);
        sql::run(&client, &format!("CREATE BUCKET {name} WITH (vbuckets = {vbuckets})")).await;
        sql::run(&client, "SET consistency = 'request_plus'").await;
        Self {
            seed,
            client,
            other,
            name,
            ids: IDS[rng.usize(..IDS.len())],
            rng,
            bucket: Bucket::default(),
            indexes: Vec::new(),
            deferred: Vec::new(),
            defined: 0,
            scans: 0,
            rows: 0,
            log: Vec::new(),
        }
    }

    async fn run(&mut self) {
        for phase in 0..PHASES {
            // Indexes are defined before, during and after the writes; the last phases define none.
            let build = match phase < 4 {
                true => Some(self.define()),
                false => None,
            };
            for _ in 0..self.rng.usize(1..6) {
                self.write().await;
            }
            if let Some((index, building)) = build {
                building.await.expect("the build's task");
                self.indexes.push(index);
            }
            self.change_definitions().await;
            self.scan_all().await;
            if phase % 3 == 1 {
                self.scan_in_a_transaction().await;
            }
        }
        self.check_documents().await;
        sql::run(&self.client, &format!("DROP BUCKET {}", self.name)).await;
        for index in &self.indexes {
            let state = sql::sqlstate(&self.client, &format!("SELECT * FROM {}", index.name)).await;
            assert_eq!(state, "42P01", "{} after its bucket is gone", index.name);
        }
    }

    fn new_index(&mut self) -> Index {
        self.defined += 1;
        let name = format!("i{}_{}", self.seed, self.defined);
        generate::index(&mut self.rng, name, &self.name)
    }

    /// Begins to create an index while documents are written.
    fn define(&mut self) -> (Index, tokio::task::JoinHandle<()>) {
        let index = self.new_index();
        let create = index.create(false);
        self.log.push(create.clone());
        let (client, seed) = (Arc::clone(&self.other), self.seed);
        let building = tokio::spawn(async move {
            let done = client.batch_execute(&create).await;
            done.unwrap_or_else(|error| panic!("seed {seed}: {create}: {error:?}"));
        });
        (index, building)
    }

    /// Sometimes defines an index that is to be built later, builds the deferred indexes, or drops
    /// one.
    async fn change_definitions(&mut self) {
        match self.rng.u8(..6) {
            0 | 1 if self.defined < 7 => {
                let index = self.new_index();
                self.execute(&index.create(true)).await;
                self.deferred.push(index);
            }
            2 | 3 if !self.deferred.is_empty() => {
                let names: Vec<_> = self.deferred.iter().map(|index| index.name.clone()).collect();
                let build = format!("BUILD INDEX ON {} ({})", self.name, names.join(", "));
                self.execute(&build).await;
                self.indexes.append(&mut self.deferred);
            }
            4 if self.indexes.len() > 3 => {
                let at = self.rng.usize(..self.indexes.len());
                let index = self.indexes.remove(at);
                self.execute(&format!("DROP INDEX {}", index.name)).await;
            }
            _ => {}
        }
    }

    async fn execute(&mut self, sql: &str) {
        self.log.push(sql.to_owned());
        if let Err(error) = self.client.batch_execute(sql).await {
            self.fail(sql, &format!("{error:?}"));
        }
    }

    async fn write(&mut self) {
        match self.rng.u8(..10) {
            0..3 => self.insert().await,
            3..6 => self.upsert().await,
            6 | 7 => self.delete().await,
            _ => self.copy().await,
        }
    }

    /// Returns random documents with distinct ids, at most `most`.
    fn documents(&mut self, most: usize) -> Vec<(String, Document)> {
        let mut list: Vec<(String, Document)> = Vec::new();
        for _ in 0..self.rng.usize(1..=most) {
            let id = generate::id(&mut self.rng, self.ids);
            if !list.iter().any(|(known, _)| *known == id) {
                list.push((id, generate::document(&mut self.rng)));
            }
        }
        list
    }

    fn insert_text(&self, documents: &[(String, Document)]) -> String {
        let rows = documents.iter().map(|(id, document)| {
            format!("({}, {})", quoted(id, '\''), quoted(&document.text, '\''))
        });
        let rows: Vec<_> = rows.collect();
        format!("INSERT INTO {} (id, doc) VALUES {}", self.name, rows.join(", "))
    }

    /// Inserts all documents, or none if one of the ids exists.
    async fn insert(&mut self) {
        let documents = self.documents(12);
        let sql = self.insert_text(&documents);
        let taken = documents.iter().any(|(id, _)| self.bucket.documents.contains_key(id));
        self.log.push(sql.clone());
        let state = sql::sqlstate(&self.client, &sql).await;
        let expected = if taken { "23505" } else { "" };
        if state != expected {
            self.fail(&sql, &format!("SQLSTATE {state:?}, must be {expected:?}"));
        }
        if !taken {
            self.bucket.documents.extend(documents);
        }
    }

    async fn upsert(&mut self) {
        let documents = self.documents(20);
        let replace = "ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
        match self.rng.bool() {
            true => self.execute(&format!("{} {replace}", self.insert_text(&documents))).await,
            false => {
                let sql = format!("INSERT INTO {} (id, doc) VALUES ($1, $2) {replace}", self.name);
                for (id, document) in &documents {
                    self.log.push(format!("{sql} with {id:?}, {}", document.text));
                    let done = self.client.execute(&sql, &[id, &document.text]).await;
                    done.unwrap_or_else(|error| self.fail(&sql, &format!("{error:?}")));
                }
            }
        }
        self.bucket.documents.extend(documents);
    }

    async fn delete(&mut self) {
        let ids: Vec<_> =
            (0..self.rng.usize(1..12)).map(|_| generate::id(&mut self.rng, self.ids)).collect();
        let list: Vec<_> = ids.iter().map(|id| quoted(id, '\'')).collect();
        let sql = format!("DELETE FROM {} WHERE id IN ({})", self.name, list.join(", "));
        self.log.push(sql.clone());
        let removed = ids.iter().filter(|id| self.bucket.documents.remove(*id).is_some()).count();
        match self.client.execute(&sql, &[]).await {
            Ok(count) if count == removed as u64 => {}
            done => self.fail(&sql, &format!("{done:?}, must be {removed}")),
        }
    }

    /// Copies documents that have their id in a field; existing documents are replaced.
    async fn copy(&mut self) {
        let field = if self.rng.bool() { "id" } else { "key" };
        let mut lines = String::new();
        let documents = self.documents(if self.ids > 100 { 400 } else { 40 });
        let count = documents.len() as u64;
        for (id, Document { mut value, .. }) in documents {
            if let Json::Object(fields) = &mut value {
                fields.insert(field.to_owned(), Json::from(&*id));
            }
            let document = generate::spelled(&mut self.rng, value);
            lines += &format!("{}\n", document.text);
            self.bucket.documents.insert(id, document);
        }
        let option = if field == "id" { "" } else { ", id 'key'" };
        let sql = format!("COPY {} FROM STDIN (FORMAT jsonl{option})", self.name);
        self.log.push(format!("{sql} {lines}"));
        let piece_bytes = self.rng.usize(1..5000);
        match sql::copy_in(&self.client, &sql, lines.as_bytes(), piece_bytes).await {
            Ok(stored) if stored == count => {}
            done => self.fail(&sql, &format!("{done:?}, must be {count}")),
        }
    }

    /// Scans every index.
    async fn scan_all(&mut self) {
        for at in 0..self.indexes.len() {
            let index = self.indexes[at].clone();
            for _ in 0..SCANS {
                let scan = generate::scan(&mut self.rng, &index, &self.bucket);
                self.check(&index, &scan, &self.bucket.clone()).await;
            }
        }
    }

    /// Scans in a transaction show one epoch of all indexes, whatever is written in the meantime.
    async fn scan_in_a_transaction(&mut self) {
        self.execute("BEGIN READ ONLY").await;
        let moment = self.bucket.clone();
        for at in 0..self.indexes.len() {
            let index = self.indexes[at].clone();
            let scan = generate::scan(&mut self.rng, &index, &moment);
            self.check(&index, &scan, &moment).await;
            let documents = self.documents(10);
            let replace = "ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
            sql::run(&self.other, &format!("{} {replace}", self.insert_text(&documents))).await;
            self.bucket.documents.extend(documents);
        }
        self.execute("COMMIT").await;
    }

    /// Runs a scan in one of the possible ways, and compares the answer with the model.
    async fn check(&mut self, index: &Index, scan: &Scan, moment: &Bucket) {
        let way = self.rng.u8(..5);
        let (text, parameters) = scan.sql(index, way >= 3);
        let answer = scan.answer(index, moment);
        let got = match way {
            0 | 1 => sql::simple(&self.client, &text).await,
            2 => sql::copy_out(&self.client, &text).await,
            _ => sql::extended(&self.client, &text, &parameters).await,
        };
        let shown = format!("{text} with {parameters:?} (way {way})");
        let mut got = match got {
            Ok(got) => got,
            Err(error) => self.fail(&shown, &format!("{}\n{error:?}", index.create(false))),
        };
        sql::without_exponents(&mut got, &numeric_columns(index, scan));
        if let Some(fault) = answer.fault(&got) {
            self.fail(&shown, &format!("{}\n{fault}", index.create(false)));
        }
        self.scans += 1;
        self.rows += got.len();
    }

    /// Compares every document with the text that was sent.
    async fn check_documents(&mut self) {
        let ids: Vec<_> = self.bucket.documents.keys().map(|id| quoted(id, '\'')).collect();
        let sql = format!("SELECT id, doc FROM {} WHERE id IN ({})", self.name, ids.join(", "));
        let rows = sql::simple(&self.client, &sql).await.expect("documents");
        assert_eq!(rows.len(), ids.len(), "seed {}: documents by id", self.seed);
        for row in rows {
            let id = row[0].clone().expect("an id");
            let sent = &self.bucket.documents[&id].text;
            assert_eq!(row[1].as_ref(), Some(sent), "seed {}: document {id:?}", self.seed);
        }
    }

    fn fail(&self, sql: &str, what: &str) -> ! {
        if std::env::var("SEXTANT_TEST_SEED").is_ok() {
            self.log.iter().for_each(|line| println!("{line}"));
        }
        panic!(
            "seed {}: {sql}\n{what}\nrepeat and show all statements: \
             SEXTANT_TEST_SEED={} cargo test -p tests --test clusters model::",
            self.seed, self.seed
        );
    }
}

/// Returns the result columns whose numbers may be spelled with an exponent.
fn numeric_columns(index: &Index, scan: &Scan) -> Vec<usize> {
    use tests::model::expr::Expr;
    let columns = index.columns();
    let kind = |expr: &Expr| match expr {
        Expr::Column(n) => columns[*n].kind,
        Expr::Cast(_, kind) => *kind,
        _ => Type::Text,
    };
    let kinds: Vec<Type> = match &scan.items {
        Items::Star => [Type::Text].into_iter().chain(columns.iter().map(|c| c.kind)).collect(),
        Items::Exprs(exprs) => exprs.iter().map(kind).collect(),
        Items::Aggregates(list) => list
            .iter()
            .map(|(function, column)| match (*function, column) {
                ("min" | "max", Some(n)) => columns[*n].kind,
                _ => Type::Numeric,
            })
            .collect(),
    };
    (0..kinds.len()).filter(|n| kinds[*n] == Type::Numeric).collect()
}

/// The exact reverse order of a small index.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reverse_scan_has_the_exact_reverse_order() {
    let cluster = TestCluster::start(1, 1).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET b; SET consistency = 'request_plus';
         CREATE INDEX i ON b (a DESC INCLUDE MISSING, c) WITH (slices = 4);
         INSERT INTO b (id, doc) VALUES ('2', '{\"a\":1,\"c\":1}'), ('10', '{\"a\":1.0,\"c\":1}'),
           ('x', '{\"c\":1}'), ('n', '{\"a\":null,\"c\":1}'), ('s', '{\"a\":\"1\"}')",
    )
    .await;
    let order = |rows: sql::Rows| -> Vec<String> {
        rows.into_iter().map(|row| row[0].clone().expect("an id")).collect()
    };
    let rows = sql::simple(&client, "SELECT id FROM i ORDER BY a DESC, c").await.expect("rows");
    assert_eq!(order(rows), ["s", "10", "2", "n", "x"], "MISSING and NULL last, ties by id");
    let rows = sql::simple(&client, "SELECT id FROM i ORDER BY a, c DESC").await.expect("rows");
    assert_eq!(order(rows), ["x", "n", "2", "10", "s"], "reversed, ties too");
}
