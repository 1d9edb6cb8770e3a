//! `COPY b FROM STDIN (FORMAT jsonl)`: one JSON document per line, in messages with arbitrary boundaries.
//!
//! Documents are written in atomic batches. One batch is in flight while the next one is collected. There are never two
//! in flight, so that a later line with the same id wins. A bad line ends the COPY: the lines before it are stored, and
//! the error names the line's number and how many documents are stored. So each line is checked completely before it
//! joins a batch. The session skips the rest of the client's data.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::copy::CopyInResponse;
use proto::env::Env;
use proto::model::bucket::BucketInfo;
use proto::rpc::api::{Write, WriteKind, WriteReply};
use proto::value::{DOCUMENT_BYTES_MAX, Value};
use proto::{Error, ErrorCode, Result};
use tokio::io::{AsyncRead, AsyncWrite};

use super::conn::Input;
use super::error::{WireError, WireResult};
use super::frame::MESSAGE_BYTES_MAX;
use super::session::Session;
use super::settings::Settings;
use crate::sql::backend::Backend;

/// Maximum of documents in a batch: enough that many share one disk sync, few enough that the projector stores a batch
/// quickly.
const BATCH_DOCUMENTS: usize = 2000;

/// Maximum of bytes in a batch.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes of lines that are checked before other tasks get their turn, and of a line that is checked on the session's own
/// thread: less than a millisecond.
const TURN_BYTES: usize = 64 << 10;

/// Longest line while its end is not seen yet: a document and as much white space.
const LINE_BYTES_MAX: usize = 2 * DOCUMENT_BYTES_MAX;

/// The byte order mark in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

type Writing = Pin<Box<dyn Future<Output = Result<WriteReply>> + Send>>;

/// A COPY in progress.
struct CopyIn {
    env: Env,
    backend: Arc<dyn Backend>,
    bucket: Arc<BucketInfo>,
    id_field: String,
    lines: Lines,
    batch: Vec<Write>,
    batch_bytes: usize,
    /// Bytes of lines that were checked since other tasks had their turn.
    turn_bytes: usize,
    /// The batch in flight with its number of documents.
    writing: Option<(Writing, u64)>,
    stored: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Stores documents until the client has sent all; returns their number.
    pub(super) async fn copy_in(
        &mut self,
        bucket: Arc<BucketInfo>,
        id_field: String,
    ) -> WireResult<u64> {
        self.conn.send(CopyInResponse::new(0, 1, vec![0]))?;
        self.conn.flush().await?;
        let mut copy = CopyIn {
            env: self.env.clone(),
            backend: Arc::clone(&self.state.backend),
            bucket,
            id_field,
            lines: Lines::default(),
            batch: Vec::new(),
            batch_bytes: 0,
            turn_bytes: 0,
            writing: None,
            stored: 0,
        };
        match self.copy_messages(&mut copy).await {
            Ok(()) => Ok(copy.stored),
            Err(CopyError::Session(error)) => Err(error),
            Err(CopyError::Copy(error)) => Err(copy.explain(error).into()),
        }
    }

    async fn copy_messages(&mut self, copy: &mut CopyIn) -> std::result::Result<(), CopyError> {
        let settings = &mut self.state.settings;
        loop {
            let input = self.interrupt.guard(self.conn.read()).await;
            let input = input.map_err(|_| CopyError::Copy(cancelled()))?;
            match input.map_err(CopyError::Session)? {
                Input::Message(Message::CopyData(data)) => {
                    let taken = self.interrupt.guard(copy.take(&data.data, settings)).await;
                    taken.map_err(|_| CopyError::Copy(cancelled()))??;
                }
                Input::Message(Message::CopyDone(_)) => {
                    let taken = self.interrupt.guard(copy.end(settings)).await;
                    return Ok(taken.map_err(|_| CopyError::Copy(cancelled()))??);
                }
                Input::Message(Message::CopyFail(fail)) => {
                    let message = format!("the client aborted the COPY: {}", fail.message);
                    return Err(Error::new(ErrorCode::Cancelled, message).into());
                }
                // Drivers send these messages after the Execute that began the COPY.
                Input::Message(Message::Flush(_) | Message::Sync(_)) => {}
                Input::TooLong(..) => {
                    let message = format!("a message is longer than {MESSAGE_BYTES_MAX} bytes");
                    return Err(Error::new(ErrorCode::OverLimit, message).into());
                }
                Input::Message(_) => {
                    let error = WireError::protocol("a message other than COPY data during a COPY");
                    return Err(CopyError::Session(error));
                }
                Input::Closed => {
                    let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                    return Err(CopyError::Session(error.into()));
                }
            }
        }
    }
}

/// Why a COPY ends early.
enum CopyError {
    /// The connection failed, or the client broke the protocol.
    Session(WireError),
    /// The COPY failed; its error also says how many documents are stored.
    Copy(Error),
}

impl From<Error> for CopyError {
    fn from(error: Error) -> Self {
        Self::Copy(error)
    }
}

fn cancelled() -> Error {
    Error::new(ErrorCode::Cancelled, "the statement was cancelled or timed out")
}

impl CopyIn {
    /// Takes a piece of the data.
    async fn take(&mut self, data: &Bytes, settings: &mut Settings) -> Result<()> {
        self.lines.push(data);
        loop {
            match self.lines.next() {
                Ok(Some(line)) => self.line(&line, settings).await?,
                Ok(None) => return Ok(()),
                Err(error) => return self.refuse(error, self.lines.number + 1, settings).await,
            }
        }
    }

    /// Ends the data; the last line may lack its newline.
    async fn end(&mut self, settings: &mut Settings) -> Result<()> {
        if let Some(line) = self.lines.last() {
            self.line(&line, settings).await?;
        }
        self.store(settings).await
    }

    async fn line(&mut self, whole: &Bytes, settings: &mut Settings) -> Result<()> {
        let mut line = whole.trim_ascii();
        if self.lines.number == 1 {
            // Some editors and systems begin a UTF-8 file with a byte order mark.
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(());
        }
        match self.check(whole.slice_ref(line)).await {
            Ok(write) => {
                self.batch_bytes += line.len();
                self.batch.push(write);
            }
            Err(error) => return self.refuse(error, self.lines.number, settings).await,
        }
        if self.batch.len() >= BATCH_DOCUMENTS || self.batch_bytes >= BATCH_BYTES {
            self.send(settings).await?;
        }
        Ok(())
    }

    /// Checks a line: a long one on a blocking thread, and short ones with pauses for other tasks.
    async fn check(&mut self, line: Bytes) -> Result<Write> {
        if line.len() > TURN_BYTES {
            let id_field = self.id_field.clone();
            return self.env.blocking(move || parse_line(&line, &id_field)).await;
        }
        self.turn_bytes += line.len();
        if self.turn_bytes > TURN_BYTES {
            self.turn_bytes = 0;
            tokio::task::yield_now().await;
        }
        parse_line(&line, &self.id_field)
    }

    /// Stores the lines before a bad one, and fails.
    async fn refuse(&mut self, error: Error, line: u64, settings: &mut Settings) -> Result<()> {
        self.store(settings).await?;
        Err(error.context(format!("line {line}")))
    }

    /// Sends the batch after the one before is stored.
    async fn send(&mut self, settings: &mut Settings) -> Result<()> {
        self.arrive(settings).await?;
        self.batch_bytes = 0;
        let writes = std::mem::take(&mut self.batch);
        if writes.is_empty() {
            return Ok(());
        }
        let documents = writes.len() as u64;
        let (backend, bucket) = (Arc::clone(&self.backend), Arc::clone(&self.bucket));
        let mut writing: Writing = Box::pin(async move { backend.write(&bucket, writes).await });
        // The first poll starts the write; it runs on while the next lines are read.
        if let std::task::Poll::Ready(reply) = futures::poll!(writing.as_mut()) {
            return self.arrived(reply?, documents, settings);
        }
        self.writing = Some((writing, documents));
        Ok(())
    }

    /// Waits for the batch in flight.
    async fn arrive(&mut self, settings: &mut Settings) -> Result<()> {
        // The batch stays in `self` during the wait: after an interrupt the error must still count it.
        let Some((writing, documents)) = &mut self.writing else { return Ok(()) };
        let documents = *documents;
        let reply = writing.await;
        self.writing = None;
        self.arrived(reply?, documents, settings)
    }

    fn arrived(
        &mut self,
        reply: WriteReply,
        documents: u64,
        settings: &mut Settings,
    ) -> Result<()> {
        self.stored += documents;
        settings.written.add(reply.position);
        Ok(())
    }

    /// Stores all lines taken so far.
    async fn store(&mut self, settings: &mut Settings) -> Result<()> {
        self.send(settings).await?;
        self.arrive(settings).await
    }

    /// Adds the bucket's name and the number of stored documents to an error.
    fn explain(&self, error: Error) -> Error {
        let open = match &self.writing {
            Some((_, documents)) => format!(", and perhaps {documents} more"),
            None => String::new(),
        };
        let mut error = error.context(format!("COPY {}", self.bucket.name));
        error.message = format!("{}; {} documents are stored{open}", error.message, self.stored);
        error
    }
}

/// Splits pieces of data into lines.
#[derive(Default)]
struct Lines {
    buffer: BytesMut,
    /// Length of the buffer's beginning that has no newline.
    searched: usize,
    /// Number of the last returned line, from 1.
    number: u64,
    /// True after a line `\.`, psql's end of the data.
    ended: bool,
}

impl Lines {
    fn push(&mut self, data: &[u8]) {
        if !self.ended {
            self.buffer.extend_from_slice(data);
        }
    }

    /// Returns the next whole line.
    fn next(&mut self) -> Result<Option<Bytes>> {
        if self.ended {
            return Ok(None);
        }
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end else {
            self.searched = self.buffer.len();
            if self.searched > LINE_BYTES_MAX {
                return Err(too_long(self.searched));
            }
            return Ok(None);
        };
        let line = self.buffer.split_to(self.searched + end + 1).freeze();
        self.searched = 0;
        Ok(self.count(line))
    }

    /// Returns the last line if it lacks its newline.
    fn last(&mut self) -> Option<Bytes> {
        let line = std::mem::take(&mut self.buffer).freeze();
        match line.is_empty() || self.ended {
            true => None,
            false => self.count(line),
        }
    }

    fn count(&mut self, line: Bytes) -> Option<Bytes> {
        self.number += 1;
        if line.trim_ascii() == b"\\." {
            self.ended = true;
            self.buffer.clear();
            return None;
        }
        Some(line)
    }
}

fn too_long(bytes: usize) -> Error {
    let message =
        format!("a document has {bytes} bytes or more; the limit is {DOCUMENT_BYTES_MAX} bytes");
    Error::new(ErrorCode::OverLimit, message)
}

/// Turns a line into a write under the id in the document's field.
fn parse_line(line: &[u8], id_field: &str) -> Result<Write> {
    if line.len() > DOCUMENT_BYTES_MAX {
        return Err(too_long(line.len()));
    }
    let document = Value::parse_json(line)?;
    let invalid = |message: String| Error::new(ErrorCode::InvalidText, message);
    let Value::Object(object) = &document else {
        return Err(invalid("the document is not a JSON object, so it has no id".into()));
    };
    let id = match object.get(id_field) {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(number)) if number.as_i128().is_some() => number.to_string(),
        Some(_) => return Err(invalid(format!("field {id_field} is neither string nor integer"))),
        None => {
            return Err(invalid(format!("the document has no field {id_field} for its id"))
                .with_hint("COPY b FROM STDIN (FORMAT jsonl, id 'field') names another field"));
        }
    };
    proto::value::key::check_id(&id)?;
    Ok(Write { id, kind: WriteKind::Upsert(Bytes::copy_from_slice(line)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_the_boundaries_of_messages() {
        let text = b"{\"a\":1}\r\n\n{\"b\":2}\nlast";
        let whole: Vec<&[u8]> = vec![b"{\"a\":1}\r\n", b"\n", b"{\"b\":2}\n", b"last"];
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut got = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece);
                got.extend(std::iter::from_fn(|| lines.next().unwrap()));
            }
            got.extend(lines.last());
            assert_eq!(got, whole, "in pieces of {size}");
            assert_eq!(lines.number, 4);
        }
    }

    #[test]
    fn the_end_mark_ends_the_data() {
        let mut lines = Lines::default();
        lines.push(b"a\n\\.\nb\nc");
        assert_eq!(lines.next().unwrap().as_deref(), Some(&b"a\n"[..]));
        assert_eq!(lines.next().unwrap(), None);
        lines.push(b"d\n");
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.last(), None);
    }

    #[test]
    fn the_id_of_a_document_is_read_from_the_given_field() {
        let id = |line: &str, field: &str| parse_line(line.as_bytes(), field).map(|write| write.id);
        assert_eq!(id(r#"{"id":"k"}"#, "id").unwrap(), "k");
        assert_eq!(id(r#"{"geonameid":42,"id":1}"#, "geonameid").unwrap(), "42");
        for (line, code) in [
            (r#"{"id":1.5}"#, ErrorCode::InvalidText),
            (r#"{"id":null}"#, ErrorCode::InvalidText),
            (r#"{"a":1}"#, ErrorCode::InvalidText),
            (r#"["id"]"#, ErrorCode::InvalidText),
            (r#"{"id":"k""#, ErrorCode::InvalidText),
            (r#"{"id":""}"#, ErrorCode::InvalidText),
        ] {
            assert_eq!(id(line, "id").unwrap_err().code, code, "{line}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(proto::value::key::ID_BYTES_MAX + 1));
        assert_eq!(id(&long, "id").unwrap_err().code, ErrorCode::OverLimit);
    }
}
