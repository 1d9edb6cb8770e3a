//! A client of the SQL port, whose query texts have several statements, which are one transaction,
//! and whose sessions read their own writes.
//!
//! Each text or COPY (one commit) writes one number into all documents of a small bucket, or fails
//! after some of them, or rolls back. The judge compares the numbers that reads return, without
//! knowledge of epochs:
//!
//! - A read returns one number for all documents, or no document.
//! - No read returns the number of a text that was rolled back. - A session never reads older data:
//!   after it has read a number or got an acknowledgment, it does not read the number of an earlier
//!   text. A text with an unknown outcome may be executed at any time, so its number is never a
//!   violation.
//!
//! If a source has lost a part of its history, only the second rule holds.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use proto::env::Env;
use sextant::auth::login_policy::LoginPolicy;
use sextant::backend::ClusterBackend;
use sextant::pg::{PgConfig, PgServer};
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::checks::is_lossy_without_copies;
use super::client::workload::STATEMENT;
use super::cluster::hosts::VBUCKETS;
use super::judge::oracle::SimIndex;
use super::{Shared, violation};

/// The index of the client's bucket.
pub const INDEX: SimIndex = SimIndex {
    name: "of_told",
    sql: "CREATE INDEX IF NOT EXISTS of_told ON told (n) WITH (replicas = 1)",
    keys: |document| vec![vec![document.get("n").cloned()]],
    descending: &[false],
    included: None,
};
/// The number of documents, all of which each text writes.
const DOCUMENTS: usize = 4;
/// The number n of writes of which one is a COPY.
const COPY_EVERY: usize = 4;
/// The buffer of the connection, in bytes.
const PIPE_BYTES: usize = 8 << 10;

/// True in seeds with such a client.
pub(super) fn are_chosen(seed: u64) -> bool {
    seed % 13 == 12
}

/// The outcome of a text, as known to the client.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Unknown,
    CarriedOut,
    Undone,
}

/// A query text, with the outcomes that its answers mean.
struct Text {
    sql: String,
    if_done: Fate,
    /// The outcome if the text is refused because an id exists.
    if_duplicate: Fate,
    /// The outcome if the text conflicts with another transaction.
    if_conflict: Fate,
    /// The number of documents that the text writes before its read, if it reads.
    written_at_read: usize,
}

/// The rows of a read: the id of a document and its number.
type Rows = Vec<(String, usize)>;

/// The client and its connection.
pub(super) struct SqlClient {
    random: fastrand::Rng,
    env: Env,
    server: PgServer,
    /// The outcome of each text by its number; number 0 stands for no text.
    fates: Vec<Fate>,
    summary: Shared,
}

/// The statements of a text that write its number into some documents.
fn writes(number: usize, documents: std::ops::Range<usize>) -> impl Iterator<Item = String> {
    documents.map(move |n| {
        format!(
            "INSERT INTO told (id, doc) VALUES ('t{n}', '{{\"n\":{number}}}') \
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
        )
    })
}

/// Returns the rows of an answer: ids and numbers.
fn rows(messages: &[SimpleQueryMessage]) -> Rows {
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some((row.get(0)?.to_owned(), row.get(1)?.parse().ok()?)),
        _ => None,
    };
    messages.iter().filter_map(row).collect()
}

impl SqlClient {
    /// Returns a client with sessions in the process of a router.
    pub fn new(seed: u64, env: &Env, cluster: &Arc<ClusterBackend>, summary: &Shared) -> Self {
        let doors = LoginPolicy::trust(env);
        let access = Arc::new(cluster.authorization(doors.flow()));
        Self {
            random: fastrand::Rng::with_seed(seed ^ 0x5e55),
            env: env.clone(),
            server: PgServer::new(access, doors, env.clone(), PgConfig::default()),
            fates: vec![Fate::CarriedOut],
            summary: Arc::clone(summary),
        }
    }

    /// Runs one session after another until the future is dropped.
    pub async fn run(mut self) {
        let mut is_made = false;
        loop {
            self.pause(500).await;
            let Some(client) = self.connect().await else { continue };
            is_made = is_made || Self::make(&client).await;
            if is_made {
                self.session(&client).await;
            }
        }
    }

    async fn pause(&mut self, ms_max: u64) {
        sleep(Duration::from_millis(self.random.u64(1..ms_max))).await;
    }

    async fn connect(&self) -> Option<Client> {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = self.server.clone();
        let serving = async move { server.connection(ours).await };
        self.env.spawn_request("sql session", serving).detach();
        let mut config = tokio_postgres::Config::new();
        config.user("client").dbname("sextant");
        let connected = timeout(STATEMENT, config.connect_raw(theirs, NoTls)).await;
        let (client, connection) = connected.ok()?.ok()?;
        let driving = async move { drop(connection.await) };
        self.env.spawn_request("sql client", driving).detach();
        Some(client)
    }

    /// Creates the bucket, its index, and a document whose id is refused later; true if they exist.
    async fn make(client: &Client) -> bool {
        let bucket = format!("CREATE BUCKET IF NOT EXISTS told WITH (vbuckets = {VBUCKETS})");
        let there = "INSERT INTO told (id, doc) VALUES ('there', '{\"there\":true}') \
                     ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
        for sql in [&bucket, INDEX.sql, there] {
            if !matches!(timeout(STATEMENT, client.batch_execute(sql)).await, Ok(Ok(()))) {
                return false;
            }
        }
        true
    }

    async fn session(&mut self, client: &Client) {
        // The greatest number that this session has seen, or that was acknowledged to it; and to any session, if it asks for all writes.
        let mut floor = 0;
        if self.random.u8(..3) == 0 {
            let set = client.batch_execute("SET consistency = 'request_plus'");
            if matches!(timeout(STATEMENT, set).await, Ok(Ok(()))) {
                let acknowledged = self.fates.iter().rposition(|fate| *fate == Fate::CarriedOut);
                floor = acknowledged.unwrap_or_default();
            }
        }
        for _ in 0..self.random.usize(5..40) {
            self.pause(150).await;
            let goes_on = match self.random.u8(..3) {
                0 => self.write(client, &mut floor).await,
                _ => self.read(client, &mut floor).await,
            };
            if goes_on.is_none() {
                return;
            }
        }
    }

    /// Sends a text and judges the answer. `None` if the connection has become unusable.
    async fn write(&mut self, client: &Client, floor: &mut usize) -> Option<()> {
        let number = self.fates.len();
        self.fates.push(Fate::Unknown);
        let (fate, read) = match number % COPY_EVERY {
            0 => (self.copy(client, number).await?, None),
            _ => self.send(client, number).await?,
        };
        self.fates[number] = fate;
        let mut summary = self.summary.lock().expect("not poisoned");
        summary.note((number, fate));
        match fate {
            Fate::CarriedOut => summary.texts_carried_out += 1,
            Fate::Undone => summary.texts_undone += 1,
            Fate::Unknown => {}
        }
        drop(summary);
        if let Some((rows, written)) = read {
            self.judge_own(&rows, (number, written), *floor);
        }
        if fate == Fate::CarriedOut {
            *floor = number;
        }
        Some(())
    }

    /// Sends a query text; returns its outcome, and the rows that it has read with the number of
    /// documents written before. `None` if the connection has become unusable.
    async fn send(
        &mut self,
        client: &Client,
        number: usize,
    ) -> Option<(Fate, Option<(Rows, usize)>)> {
        let text = self.text(number);
        let answer = timeout(STATEMENT, client.simple_query(&text.sql)).await.ok()?;
        Some(match answer {
            Ok(messages) => {
                let written = text.written_at_read;
                (text.if_done, (written > 0).then(|| (rows(&messages), written)))
            }
            Err(error) => match *error.code()? {
                SqlState::UNIQUE_VIOLATION => (text.if_duplicate, None),
                SqlState::T_R_SERIALIZATION_FAILURE => (text.if_conflict, None),
                _ => (Fate::Unknown, None),
            },
        })
    }

    /// Writes by COPY, in half of the cases with an invalid last line; returns the outcome. `None`
    /// if the connection has become unusable.
    async fn copy(&mut self, client: &Client, number: usize) -> Option<Fate> {
        let line = |n| format!("{{\"id\":\"t{n}\",\"n\":{number}}}\n");
        let mut lines: String = (0..DOCUMENTS).map(line).collect();
        if self.random.bool() {
            lines.push_str("{\"id\":\n");
        }
        let copied = timeout(STATEMENT, async {
            let copy = client.copy_in("COPY told FROM STDIN (FORMAT jsonl)").await?;
            let mut copy = std::pin::pin!(copy);
            copy.send(Bytes::from(lines)).await?;
            copy.finish().await
        });
        Some(match copied.await.ok()? {
            Ok(_) => Fate::CarriedOut,
            Err(error) => match *error.code()? {
                SqlState::INVALID_TEXT_REPRESENTATION => Fate::Undone,
                _ => Fate::Unknown,
            },
        })
    }

    /// Returns a random text.
    fn text(&mut self, number: usize) -> Text {
        use Fate::{CarriedOut, Undone, Unknown};
        let all = || writes(number, 0..DOCUMENTS);
        let some = self.random.usize(1..DOCUMENTS);
        let (before, after) = (|| writes(number, 0..some), || writes(number, some..DOCUMENTS));
        let one = |statement: &str| std::iter::once(statement.to_owned());
        let refused = || one("INSERT INTO told (id, doc) VALUES ('there', '{\"there\":true}')");
        let (statements, if_done, if_duplicate): (Vec<String>, _, _) = match self.random.u8(..8) {
            // An id that is there already fails the text in its midst.
            0 | 1 => (before().chain(refused()).chain(after()).collect(), CarriedOut, Undone),
            2 => (all().chain(one("ROLLBACK")).collect(), Undone, Undone),
            3 => (one("BEGIN").chain(all()).chain(one("COMMIT")).collect(), CarriedOut, Undone),
            4 => {
                let back = ["SAVEPOINT s", "DELETE FROM told WHERE id = 't0'", "ROLLBACK TO s"];
                let back = back.into_iter().flat_map(one);
                let statements = one("BEGIN").chain(all()).chain(back).chain(one("COMMIT"));
                (statements.collect(), CarriedOut, Undone)
            }
            // The error comes after the end of the first transaction.
            5 => (all().chain(one("COMMIT")).chain(refused()).collect(), CarriedOut, CarriedOut),
            6 => {
                let read = one("SELECT id, n FROM of_told");
                (before().chain(read).chain(after()).collect(), CarriedOut, Undone)
            }
            _ => (all().collect(), CarriedOut, Undone),
        };
        let reads = statements.iter().any(|statement| statement.starts_with("SELECT"));
        let ends_early = if_duplicate == CarriedOut;
        Text {
            sql: statements.join("; "),
            if_done,
            if_duplicate,
            if_conflict: if ends_early { Unknown } else { Undone },
            written_at_read: if reads { some } else { 0 },
        }
    }

    /// Reads all documents and judges them. `None` if the connection has become unusable.
    async fn read(&mut self, client: &Client, floor: &mut usize) -> Option<()> {
        let select = client.simple_query("SELECT id, n FROM of_told");
        let messages = match timeout(STATEMENT, select).await.ok()? {
            Ok(messages) => messages,
            Err(error) => return error.code().map(|_| ()),
        };
        let rows = rows(&messages);
        let mut summary = self.summary.lock().expect("not poisoned");
        summary.note(&rows);
        summary.sql_reads += 1;
        drop(summary);
        match self.number_of(&rows, DOCUMENTS, *floor) {
            Ok(number) => {
                // All later texts follow it.
                if number + 1 == self.fates.len() {
                    self.fates[number] = Fate::CarriedOut;
                }
                *floor = number.max(*floor);
            }
            Err((what, is_undone)) => self.is_wrong(what, is_undone),
        }
        Some(())
    }

    /// Returns the number that all documents have, 0 for no documents. The error contains a text
    /// about the violation, and true if the number belongs to a text that was rolled back.
    fn number_of(
        &self,
        rows: &Rows,
        documents: usize,
        floor: usize,
    ) -> Result<usize, (String, bool)> {
        let undone = rows.iter().find(|(_, n)| self.fates.get(*n) == Some(&Fate::Undone));
        if undone.is_some() {
            return Err((format!("shows an undone text: {rows:?}"), true));
        }
        let number = rows.first().map_or(0, |(_, number)| *number);
        let is_whole = rows.is_empty() || rows.len() == documents;
        let is_one = is_whole && rows.iter().all(|(_, other)| *other == number);
        if !is_one || number >= self.fates.len() {
            return Err((format!("shows a part of a text: {rows:?}"), false));
        }
        match self.fates[number] == Fate::CarriedOut && number < floor {
            true => Err((format!("shows {number} after {floor}"), false)),
            false => Ok(number),
        }
    }

    /// Judges the read in a text, which must return the documents that the text has written before,
    /// and the others unchanged.
    fn judge_own(&self, rows: &Rows, (number, written): (usize, usize), floor: usize) {
        let is_own = |id: &str| (0..written).any(|n| id == format!("t{n}"));
        let (own, others): (Rows, Rows) = rows.iter().cloned().partition(|(id, _)| is_own(id));
        if own.len() != written || own.iter().any(|(_, shown)| *shown != number) {
            self.is_wrong(format!("text {number} does not see its own writes: {rows:?}"), false);
        }
        if let Err((what, is_undone)) = self.number_of(&others, DOCUMENTS - written, floor) {
            self.is_wrong(format!("text {number}: {what}"), is_undone);
        }
    }

    fn is_wrong(&self, what: String, is_undone: bool) {
        if is_undone || !is_lossy_without_copies(&self.summary) {
            violation(&self.summary, format!("a session of SQL: {what}"));
        }
    }
}
