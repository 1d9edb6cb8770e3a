//! Entry points for fuzzers of the SQL port: the bytes that a client sends in each stage of a
//! connection. The bytes must be accepted or refused without a panic, and the memory must be in
//! proportion to their number.

use std::cell::OnceCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::FutureExt;
use pgwire::api::Type;
use proto::env::Env;
use proto::expr::ColumnType;
use proto::model::users::Users;
use proto::rpc::rows::Row;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Runtime;

use super::copy::lines::PieceBuffer;
use super::memory::{MemoryAccess, MemoryCluster};
use super::message::conn::Conn;
use super::message::frame;
use super::message::types::parameter;
use super::session::settings::Settings;
use super::start::login::initial_response;
use super::start::startup::{self, Encryption, Start};
use super::{PgConfig, PgServer};
use crate::auth::login_policy::LoginPolicy;
use crate::auth::scram::{Account, Exchange, Mechanism};
use crate::rows::entry::EntryPrinter;
use crate::rows::format::Format;
use crate::sql::plan::Cell;

/// The time limit of a session. Some statements would otherwise wait for an event that never
/// happens.
const SESSION_TIME_MAX: Duration = Duration::from_secs(2);

/// A socket with given input, which arrives in parts of different lengths, as from a network.
/// Output is discarded.
struct GivenInput<'a> {
    input: &'a [u8],
    /// The state of the generator of the lengths of these parts.
    state: u32,
}

impl<'a> GivenInput<'a> {
    fn new(input: &'a [u8]) -> Self {
        Self { input, state: crc32c::crc32c(input) | 1 }
    }
}

impl AsyncRead for GivenInput<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let piece = 1 + match self.state >> 30 {
            0 => (self.state >> 16) as usize % 8,
            1 => (self.state >> 16) as usize % 100,
            _ => usize::MAX >> 1,
        };
        let (now, later) = self.input.split_at(piece.min(self.input.len()).min(buf.remaining()));
        buf.put_slice(now);
        self.input = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for GivenInput<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Processes the start of a connection: requests for encryption, a cancel request, a start-up
/// packet. The first byte of `data` chooses what the port offers.
pub fn startup(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let choices = [Encryption::Absent, Encryption::Offered, Encryption::Present];
    let mut conn = Conn::new(GivenInput::new(data));
    let begun = startup::begin(&mut conn, choices[usize::from(first % 3)]).now_or_never();
    if let Some(Ok(Start::Session(parameters))) = begun {
        let mut settings = Settings::default();
        let _ = parameters.apply(&mut settings);
        let _ = (parameters.user(), parameters.database());
    }
}

/// Processes the two messages of a log-in with SCRAM. The first byte chooses the account and the
/// connection; the next two are the length of the first message.
pub fn login(users: &Users, data: &[u8]) {
    let Some((&[choice, high, low], data)) = data.split_first_chunk() else { return };
    let at = usize::from(u16::from_be_bytes([high, low])).min(data.len());
    let (first, last) = data.split_at(at);
    let Some((name, first)) = initial_response(first) else { return };
    let end_point = (choice & 1 == 1).then_some(&b"a hash of the server's certificate"[..]);
    let offered = Mechanism::offered(end_point).iter();
    let Some(mechanism) = offered.copied().find(|it| it.name().as_bytes() == name) else { return };
    let user = if choice & 2 == 2 { "nobody" } else { "user" };
    let account = Account::of(users, user, 0);
    let nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    if let Ok((exchange, _)) = Exchange::begin(mechanism, first, account, (end_point, nonce)) {
        let _ = exchange.finish(last);
    }
}

/// Decodes one message of a session. The first byte of `data` is its type, the rest its body.
pub fn message(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else { return };
    let mut message = BytesMut::new();
    put_message(&mut message, *kind, body);
    let _ = frame::decode(message);
}

/// Appends a message of a client.
fn put_message(out: &mut BytesMut, kind: u8, body: &[u8]) {
    out.put_u8(kind);
    out.put_u32(body.len() as u32 + 4);
    out.extend_from_slice(body);
}

/// Decodes the value of a parameter: the first byte chooses the type, the second one the format.
pub fn parameter_value(data: &[u8]) {
    const TYPES: [Type; 17] = [
        Type::BOOL,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::OID,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::NUMERIC,
        Type::TEXT,
        Type::VARCHAR,
        Type::BPCHAR,
        Type::NAME,
        Type::JSON,
        Type::JSONB,
        Type::UNKNOWN,
        Type::TIMESTAMP,
        Type::TEXT_ARRAY,
    ];
    let Some((&[kind, format], data)) = data.split_first_chunk() else { return };
    let format = if format & 1 == 0 { Format::Text } else { Format::Binary };
    let of = &TYPES[usize::from(kind) % TYPES.len()];
    let _ = parameter(of.oid(), format, Some(&Bytes::copy_from_slice(data)));
}

/// Processes the data of a COPY in messages, whose size the first byte chooses.
pub fn copy_lines(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let mut pieces = PieceBuffer::default();
    for message in data.chunks(1 + 16 * usize::from(*first)) {
        pieces.push(message);
        while let Some(piece) = pieces.next() {
            piece.check("id");
        }
        if pieces.check().is_err() {
            return;
        }
    }
    let rest = pieces.rest().check("id");
    assert!(rest.lines as usize <= data.len() + 1, "{} lines of {} bytes", rest.lines, data.len());
}

/// Prints a row whose entry and included values come from another process. The first byte of
/// `data` is the length of the entry; the second one chooses which parts of the key are
/// descending.
pub fn printed_row(data: &[u8]) {
    let Some((&[length, directions], data)) = data.split_first_chunk() else { return };
    let (entry, include) = data.split_at(usize::from(length).min(data.len()));
    let row = Row { entry, include };
    let cells = vec![Cell::Id, Cell::Key(1), Cell::Key(0), Cell::Include(2), Cell::Include(0)];
    let descending = vec![directions & 1 == 1, directions & 2 == 2];
    let mut printer = EntryPrinter::with_directions(cells, descending);
    let types = [ColumnType::Text, ColumnType::Numeric, ColumnType::Int8, ColumnType::Float8];
    for column_type in types.into_iter().chain([ColumnType::Bool, ColumnType::Int4]) {
        for format in [Format::Text, Format::Binary] {
            let mut printed = printer.row(row);
            for cell in [2, 0, 4, 1, 3] {
                let _ = printed.write(cell, column_type, format, &mut Vec::new());
            }
            let _ = printed.int(1, column_type);
        }
    }
    let _ = printer.integers(row);
}

/// Runs a session over a small cluster in memory, from the start-up packet to the end of the input.
///
/// The first byte chooses the form of the other bytes: after an even byte they are the bytes of the
/// socket; after an odd byte they are messages, each with its type, a length of two bytes, and its
/// body.
pub fn session(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let mut input = BytesMut::from(STARTUP);
    match first & 1 {
        0 => input.extend_from_slice(data),
        _ => put_messages(&mut input, data),
    }
    WORLD.with(|world| world.get_or_init(FuzzCluster::new).run(&input));
}

/// Appends messages; `data` contains the type, a length of two bytes, and the body of each.
fn put_messages(out: &mut BytesMut, mut data: &[u8]) {
    while let Some((&[kind, high, low], rest)) = data.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (body, behind) = rest.split_at(length);
        put_message(out, kind, body);
        data = behind;
    }
}

const STARTUP: &[u8] = b"\0\0\0\x12\0\x03\0\0user\0ada\0\0";

/// The statements that create the bucket, the index and the documents of the sessions.
const SETUP: &[u8] = b"CREATE BUCKET b WITH (vbuckets = 4); \
    CREATE INDEX cities ON b (country, population::int8 DESC) INCLUDE (name); \
    INSERT INTO b (id, doc) VALUES ('1', '{\"country\":\"DE\",\"name\":\"Ulm\",\"population\":120000}'), \
    ('2', '{\"country\":\"AT\",\"name\":\"Wien\",\"tags\":[\"a\",\"b\"]}')\0";

thread_local! {
    static WORLD: OnceCell<FuzzCluster> = const { OnceCell::new() };
}

/// A cluster in memory with the buckets and indexes of `SETUP`, and what a session needs.
struct FuzzCluster {
    runtime: Runtime,
    env: Env,
    doors: Arc<LoginPolicy>,
    cluster: Arc<MemoryCluster>,
}

impl FuzzCluster {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime");
        let env = Env::real();
        let (doors, cluster) = (LoginPolicy::trust(&env), Arc::default());
        let world = Self { runtime, env, doors, cluster };
        let mut input = BytesMut::from(STARTUP);
        put_message(&mut input, b'Q', SETUP);
        world.run_over(&world.cluster, &input);
        world
    }

    /// Runs a session with this input over a copy of the cluster.
    fn run(&self, input: &[u8]) {
        self.run_over(&Arc::new(self.cluster.copy_of_cluster()), input);
    }

    /// Runs a session with this input over `cluster`.
    fn run_over(&self, cluster: &Arc<MemoryCluster>, input: &[u8]) {
        let provider = MemoryAccess { memory: Arc::clone(cluster), ..Default::default() };
        let (doors, env) = (Arc::clone(&self.doors), self.env.clone());
        self.runtime.block_on(async {
            let server = PgServer::new(Arc::new(provider), doors, env, PgConfig::default());
            let session = server.connection(GivenInput::new(input));
            let _may_wait_for_ever = tokio::time::timeout(SESSION_TIME_MAX, session).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Cluster as _;

    #[test]
    fn the_sessions_of_the_fuzzer_have_an_index_and_documents() {
        let world = FuzzCluster::new();
        let catalog = world.cluster.catalog();
        assert!(catalog.index("cities").is_some());
        let mut input = BytesMut::from(STARTUP);
        put_messages(&mut input, b"Q\0\x0fDELETE FROM b;\0");
        put_messages(&mut input, b"Q\0\x20INSERT INTO b (id) VALUES ('3')\0");
        let again = Arc::new(world.cluster.copy_of_cluster());
        world.run_over(&again, &input);
        assert_eq!(world.cluster.catalog(), catalog, "the template stays");
    }
}
