//! Tests the statements of one query text, and the messages up to one Sync, over a whole cluster:
//! each of the two is one transaction.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use tests::harness::TestCluster;
use tests::harness::sql;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::Client;

/// A connection on which a test writes batches of messages, as drivers do.
struct Pipeline(TcpStream);

impl Pipeline {
    async fn open(cluster: &TestCluster) -> Self {
        let mut stream = TcpStream::connect(cluster.sql_address()).await.expect("connected");
        let start = [&196_608u32.to_be_bytes()[..], b"user\0u\0\0"].concat();
        stream.write_u32(start.len() as u32 + 4).await.expect("sent");
        stream.write_all(&start).await.expect("sent");
        let mut pipeline = Self(stream);
        pipeline.answers().await;
        pipeline
    }

    /// Executes statements with one Sync at the end. Returns their command tags or the SQLSTATE of
    /// an error, and then the transaction status.
    async fn run(&mut self, statements: &[&str]) -> Vec<String> {
        let message = |kind: u8, body: &[u8]| {
            [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
        };
        let mut bytes = Vec::new();
        for statement in statements {
            let parse = [b"\0", statement.as_bytes(), b"\0\0\0"].concat();
            bytes.extend(message(b'P', &parse));
            bytes.extend(message(b'B', b"\0\0\0\0\0\0\0\0"));
            bytes.extend(message(b'E', b"\0\0\0\0\0"));
        }
        bytes.extend(message(b'S', b""));
        self.0.write_all(&bytes).await.expect("sent");
        self.answers().await
    }

    async fn answers(&mut self) -> Vec<String> {
        let mut answers = Vec::new();
        loop {
            let kind = self.0.read_u8().await.expect("a message");
            let length = self.0.read_u32().await.expect("a length") as usize;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body).await.expect("a body");
            let text = String::from_utf8_lossy(&body).into_owned();
            match kind {
                b'C' => answers.push(text.trim_end_matches('\0').to_owned()),
                b'E' => {
                    let code = text.split('\0').find_map(|field| field.strip_prefix('C'));
                    answers.push(code.expect("a code").to_owned());
                }
                b'Z' => {
                    answers.push(text);
                    return answers;
                }
                _ => {}
            }
        }
    }
}

fn insert(id: &str) -> String {
    format!("INSERT INTO b (id, doc) VALUES ('{id}', '{{\"n\":1}}')")
}

async fn count(client: &Client) -> String {
    sql::value(client, "SELECT count(*) FROM i").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_fails_has_stored_nothing() {
    let cluster = TestCluster::start(1, 2).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b; CREATE INDEX i ON b (n::int8)").await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    let [a, b, c] = ["a", "b", "c"].map(insert);
    assert_eq!(sql::sqlstate(&client, &format!("{a}; {b}; {a}")).await, "23505");
    assert_eq!(count(&client).await, "0");
    let mut pipeline = Pipeline::open(&cluster).await;
    let one = "INSERT 0 1";
    assert_eq!(pipeline.run(&[&a, &b, &a]).await, [one, one, "23505", "I"]);
    assert_eq!(count(&client).await, "0");
    assert_eq!(pipeline.run(&[&a, "SELECT x"]).await, [one, "42703", "I"]);
    assert_eq!(count(&client).await, "0");
    assert_eq!(pipeline.run(&[&a, &b]).await, [one, one, "I"]);
    assert_eq!(count(&client).await, "2");
    assert_eq!(pipeline.run(&[&c]).await, [one, "I"]);
    assert_eq!(count(&client).await, "3");
    // Reads before the first write are single statements; those after it see it, in documents and in indexes.
    let reads = "SELECT count(*) FROM i";
    let text = format!("{reads}; DELETE FROM b WHERE id = 'a'; {reads}; {b}");
    assert_eq!(sql::sqlstate(&client, &text).await, "23505");
    let text = format!("DELETE FROM b WHERE id = 'a'; {reads}");
    assert_eq!(sql::value(&client, &text).await, "2");
    // Another session writes between a write and its Sync: a transaction that has read nothing replaces it.
    sql::run(&client, "BEGIN; DELETE FROM b WHERE id = 'b'").await;
    assert_eq!(pipeline.run(&["DELETE FROM b WHERE id = 'c'"]).await, ["DELETE 1", "I"]);
    sql::run(&client, "COMMIT").await;
    assert_eq!(count(&client).await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_one_commit_up_to_its_bounds() {
    const MOST: usize = 100_000;
    let cluster = TestCluster::start(1, 2).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b; CREATE INDEX i ON b (n::int8)").await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    let lines = |documents: usize| -> String {
        (0..documents).map(|n| format!("{{\"id\":{n},\"n\":{n}}}\n")).collect()
    };
    let copy = async |sql: &str, lines: &str| {
        let copied = sql::copy_in(&client, sql, lines.as_bytes(), 70_000).await;
        copied.map_err(|error| error.as_db_error().expect("an answer").message().to_owned())
    };
    let bad = |documents: usize| lines(documents) + "bad\n";
    for documents in [10, 20_000, MOST] {
        let told = copy("COPY b FROM STDIN", &bad(documents)).await.expect_err("a bad line");
        assert!(told.ends_with("nothing is stored"), "{documents}: {told}");
        assert_eq!(count(&client).await, "0", "{documents}");
        let copied = copy("COPY b FROM STDIN", &lines(documents)).await;
        assert_eq!(copied, Ok(documents as u64));
        assert_eq!(count(&client).await, documents.to_string());
        let ids: Vec<String> = (0..documents).map(|n| format!("'{n}'")).collect();
        for ids in ids.chunks(10_000) {
            sql::run(&client, &format!("DELETE FROM b WHERE id IN ({})", ids.join(","))).await;
        }
    }
    let atomic = "COPY b FROM STDIN WITH (atomic = on)";
    let told = copy(atomic, &bad(MOST + 20_000)).await.expect_err("a bad line");
    assert!(told.ends_with("nothing is stored"), "{told}");
    assert_eq!(count(&client).await, "0");
    let told = copy("COPY b FROM STDIN", &bad(MOST + 20_000)).await.expect_err("a bad line");
    assert!(told.ends_with("120000 documents are stored"), "{told}");
    assert_eq!(count(&client).await, "120000");
}
