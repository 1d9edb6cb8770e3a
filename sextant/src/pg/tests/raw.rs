//! A session over which tests send raw messages that drivers do not send.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::Cluster;

/// Returns the bytes of a message: type, length, body.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

pub(super) struct Raw(DuplexStream);

impl Raw {
    pub(super) async fn open(cluster: &Cluster) -> Self {
        let mut raw = Raw(cluster.dial());
        // Like libpq, it requests encryption first.
        raw.0.write_all(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]).await.unwrap();
        assert_eq!(raw.0.read_u8().await.unwrap(), b'N');
        let body = b"\0\x03\0\0user\0me\0\0";
        raw.0.write_u32(body.len() as u32 + 4).await.unwrap();
        raw.0.write_all(body).await.unwrap();
        assert!(raw.until_ready().await.starts_with('R'));
        raw
    }

    /// Returns a session that has begun, over its connection.
    pub(super) fn over(connection: DuplexStream) -> Self {
        Self(connection)
    }

    pub(super) async fn send(&mut self, messages: &[Vec<u8>]) {
        self.0.write_all(&messages.concat()).await.unwrap();
    }

    /// Returns the types of the answers up to ReadyForQuery, with the SQLSTATE of errors, then the
    /// transaction status.
    pub(super) async fn until_ready(&mut self) -> String {
        self.until(b'Z').await
    }

    /// Returns the answers up to ReadyForQuery as text: command tags, rows, and the SQLSTATEs of
    /// errors and notices.
    pub(super) async fn told(&mut self) -> String {
        let mut told = Vec::new();
        loop {
            let kind = self.0.read_u8().await.unwrap();
            let length = self.0.read_u32().await.unwrap() as usize;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body).await.unwrap();
            let text = String::from_utf8_lossy(&body).into_owned();
            let field = |name: char| {
                let field = text.split('\0').find_map(|field| field.strip_prefix(name));
                field.unwrap_or_default().to_owned()
            };
            match kind {
                b'C' => told.push(text.trim_end_matches('\0').to_owned()),
                b'D' => told.push(format!("({})", &text[6..])),
                b'E' => told.push(field('C')),
                b'N' => told.push(format!("{}: {}", field('S'), field('M'))),
                b's' => told.push("more".to_owned()),
                b'Z' => {
                    told.push(text);
                    return told.join(", ");
                }
                _ => {}
            }
        }
    }

    /// Returns the types of the answers up to the first answer of type `end`.
    pub(super) async fn until(&mut self, end: u8) -> String {
        let mut types = String::new();
        while let Ok(kind) = self.0.read_u8().await {
            let length = self.0.read_u32().await.unwrap() as usize;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body).await.unwrap();
            types.push(char::from(kind));
            if kind == b'E' {
                let text = String::from_utf8_lossy(&body).into_owned();
                let code = text.split('\0').find(|field| field.starts_with('C')).unwrap();
                types.push_str(&format!("({})", &code[1..]));
            }
            if kind == b'Z' {
                types.push(char::from(body[0]));
            }
            if kind == end {
                return types;
            }
        }
        types + "closed"
    }
}

pub(super) fn parse(sql: &str) -> Vec<u8> {
    parse_as("", sql)
}

pub(super) fn parse_as(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat())
}

pub(super) fn bind() -> Vec<u8> {
    bind_as("", "")
}

/// Returns a Bind message for a portal and a statement with these names.
pub(super) fn bind_as(portal: &str, statement: &str) -> Vec<u8> {
    let names = [portal.as_bytes(), b"\0", statement.as_bytes(), b"\0"];
    message(b'B', &[&names.concat()[..], b"\0\0\0\0\0\0"].concat())
}

fn describe() -> Vec<u8> {
    message(b'D', b"P\0")
}

pub(super) fn execute(rows: u8) -> Vec<u8> {
    execute_as("", rows)
}

pub(super) fn execute_as(portal: &str, rows: u8) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), &[0, 0, 0, 0, rows]].concat())
}

pub(super) fn flush() -> Vec<u8> {
    message(b'H', b"")
}

pub(super) fn sync() -> Vec<u8> {
    message(b'S', b"")
}

pub(super) fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &[sql.as_bytes(), b"\0"].concat())
}

#[tokio::test]
async fn messages_after_an_error_are_skipped_up_to_sync_and_the_status_shows_the_transaction() {
    let cluster = Cluster::new();
    let mut raw = Raw::open(&cluster).await;
    raw.send(&[parse("SELECT 1"), bind(), describe(), execute(0), sync()]).await;
    assert_eq!(raw.until_ready().await, "12TDCZI");
    raw.send(&[parse("SELEC"), bind(), execute(0), query("SELECT 1"), sync()]).await;
    assert_eq!(raw.until_ready().await, "E(42601)ZI");
    raw.send(&[parse(""), bind(), describe(), execute(0), sync()]).await;
    assert_eq!(raw.until_ready().await, "12nIZI");
    raw.send(&[parse("SHOW ALL"), bind(), execute(2), execute(1), sync(), execute(1), sync()])
        .await;
    assert_eq!(raw.until_ready().await, "12DDsDsZI");
    assert_eq!(raw.until_ready().await, "E(34000)ZI", "portals end with their transaction");
    raw.send(&[query("BEGIN; BEGIN"), query("SELECT x"), query("SELECT 1"), query("END")]).await;
    assert_eq!(raw.until_ready().await, "CNCZT");
    assert_eq!(raw.until_ready().await, "E(42703)ZE");
    assert_eq!(raw.until_ready().await, "E(25P02)ZE");
    assert_eq!(raw.until_ready().await, "CZI");
    raw.send(&[query(""), query("SET application_name = 'x'"), query("ROLLBACK")]).await;
    assert_eq!(raw.until_ready().await, "IZI");
    assert_eq!(raw.until_ready().await, "SCZI", "a reported setting is reported");
    assert_eq!(raw.until_ready().await, "NCZI");
}

#[tokio::test]
async fn a_client_that_flushes_and_waits_receives_an_error() {
    let cluster = Cluster::new();
    let mut raw = Raw::open(&cluster).await;
    raw.send(&[parse("SELEC"), describe(), flush()]).await;
    let told = tokio::time::timeout(Duration::from_secs(5), raw.until(b'E'));
    assert_eq!(told.await.expect("an answer before Sync"), "E(42601)");
    raw.send(&[flush(), sync()]).await;
    assert_eq!(raw.until_ready().await, "ZI");
    raw.send(&[parse("SELECT 1"), bind(), flush()]).await;
    assert_eq!(raw.until(b'2').await, "12", "skipping is over");
}

#[tokio::test]
async fn messages_of_a_failed_copy_are_skipped() {
    let cluster = Cluster::new();
    let mut raw = Raw::open(&cluster).await;
    raw.send(&[query("CREATE BUCKET b")]).await;
    assert_eq!(raw.until_ready().await, "CZI");
    let data = |text: &str| message(b'd', text.as_bytes());
    raw.send(&[query("COPY b FROM STDIN; SELECT 1"), data("{\"id\":\"a\"}\nbad\n")]).await;
    raw.send(&[data("{\"id\":\"b\"}\n"), message(b'c', b""), query("SELECT 1")]).await;
    assert_eq!(raw.until_ready().await, "GE(22P02)ZI");
    assert_eq!(raw.until_ready().await, "TDCZI");
    raw.send(&[query("COPY b FROM STDIN"), message(b'f', b"no more\0")]).await;
    assert_eq!(raw.until_ready().await, "GE(57014)ZI");
    raw.send(&[query("COPY b FROM STDIN"), data("{\"id\":\"c\"}"), message(b'c', b"")]).await;
    assert_eq!(raw.until_ready().await, "GCZI");
}

#[tokio::test]
async fn malformed_messages_end_the_session_and_long_ones_do_not() {
    let cluster = Cluster::new();
    let mut raw = Raw::open(&cluster).await;
    let long = vec![b'x'; crate::pg::message::frame::MESSAGE_BYTES_MAX];
    raw.send(&[message(b'Q', &long), query("SELECT 1")]).await;
    assert_eq!(raw.until_ready().await, "E(54000)ZI");
    assert_eq!(raw.until_ready().await, "TDCZI");
    raw.send(&[message(b'P', &long), bind(), sync()]).await;
    assert_eq!(raw.until_ready().await, "E(54000)ZI");
    for kind in [b'P', b'Q'] {
        raw.send(&[parse("SELEC"), message(kind, &long), sync()]).await;
        assert_eq!(raw.until_ready().await, "E(42601)ZI", "one error before Sync");
    }
    for broken in [
        message(b'!', b""),
        message(b'Q', b"no end"),
        message(b'B', b"\0\0\0\x05"),
        vec![b'Q', 0xff, 0xff, 0xff, 0xff],
    ] {
        let mut raw = Raw::open(&cluster).await;
        raw.send(&[broken]).await;
        assert_eq!(raw.until_ready().await, "E(08P01)closed");
    }
    for start in [&[0, 0, 0, 8, 0, 2, 0, 0][..], &[0xff; 8], &[0, 0, 0, 9, 0, 3, 0, 0, b'x']] {
        let mut raw = Raw(cluster.dial());
        raw.0.write_all(start).await.unwrap();
        assert_eq!(raw.until_ready().await, "E(08P01)closed");
    }
}

/// Returns a session over a cluster with a bucket and an index of this name.
async fn with_index(name: &str) -> Raw {
    let cluster = Cluster::new();
    let mut raw = Raw::open(&cluster).await;
    raw.send(&[query(&format!("CREATE BUCKET b; CREATE INDEX {name} ON b (n::int8)"))]).await;
    assert_eq!(raw.until_ready().await, "CCZI");
    raw
}

/// All answers of a statement that the cluster answers quickly must arrive in one system call,
/// including those before the cluster's answer.
#[tokio::test]
async fn all_answers_of_a_quick_statement_come_at_once() {
    let mut raw = with_index("quick").await;
    raw.send(&[parse("SELECT n FROM quick"), bind(), describe(), execute(0), sync()]).await;
    let mut answers = vec![0; 1 << 10];
    let bytes = raw.0.read(&mut answers).await.unwrap();
    assert_eq!(answers[bytes - 6..bytes], *b"Z\0\0\0\x05I", "{:?}", &answers[..bytes]);
}

#[tokio::test]
async fn answers_do_not_wait_for_a_statement_that_is_slow() {
    let mut raw = with_index("stuck").await;
    raw.send(&[query("SELECT 1; SELECT n FROM stuck")]).await;
    let told = tokio::time::timeout(Duration::from_secs(5), raw.until(b'C'));
    assert_eq!(told.await.expect("the first statement is done"), "TDC");
}
