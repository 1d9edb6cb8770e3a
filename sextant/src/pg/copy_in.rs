//! `COPY b FROM STDIN (FORMAT jsonl)`: one JSON document a line, in messages cut anywhere.
//!
//! Documents are written in batches, each all or nothing; one batch is on its way while the next is
//! gathered, and never two, so that a later line for the same id wins. At a bad line the COPY ends:
//! what stands before it is stored, and the error says the line's number and how many documents are
//! stored. So each line is checked for all that a document must be before it joins a batch. The rest of what the client sends is skipped by the session.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::copy::CopyInResponse;
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

/// Documents of a batch: enough that a sync of the disk is shared by many, few enough that a batch is
/// a moment's work for who stores it.
const BATCH_DOCUMENTS: usize = 2000;

/// Bytes of a batch.
const BATCH_BYTES: usize = 1 << 20;

/// Longest line before its end is seen: a document, and as much white space around it.
const LINE_BYTES_MAX: usize = 2 * DOCUMENT_BYTES_MAX;

type Writing = Pin<Box<dyn Future<Output = Result<WriteReply>> + Send>>;

/// A COPY in progress.
struct CopyIn {
    backend: Arc<dyn Backend>,
    bucket: Arc<BucketInfo>,
    id_field: String,
    lines: Lines,
    batch: Vec<Write>,
    batch_bytes: usize,
    /// The batch on its way, and how many documents it has.
    writing: Option<(Writing, u64)>,
    stored: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Takes documents until the client has no more; says how many.
    pub(super) async fn copy_in(
        &mut self,
        bucket: Arc<BucketInfo>,
        id_field: String,
    ) -> WireResult<u64> {
        self.conn.send(CopyInResponse::new(0, 1, vec![0]))?;
        self.conn.flush().await?;
        let mut copy = CopyIn {
            backend: Arc::clone(&self.state.backend),
            bucket,
            id_field,
            lines: Lines::default(),
            batch: Vec::new(),
            batch_bytes: 0,
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
                    let message = format!("the client gave up: {}", fail.message);
                    return Err(Error::new(ErrorCode::Cancelled, message).into());
                }
                // Drivers send these behind the Execute that began the COPY.
                Input::Message(Message::Flush(_) | Message::Sync(_)) => {}
                Input::TooLong(..) => {
                    let message = format!("a message over {MESSAGE_BYTES_MAX} bytes");
                    return Err(Error::new(ErrorCode::OverLimit, message).into());
                }
                Input::Message(_) => {
                    let error = WireError::protocol("a message that does not belong into a COPY");
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
    /// The session is broken.
    Session(WireError),
    /// The COPY itself; the error is told with what is stored.
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
    /// Takes in a piece of the lines.
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

    /// The last line may lack its end.
    async fn end(&mut self, settings: &mut Settings) -> Result<()> {
        if let Some(line) = self.lines.last() {
            self.line(&line, settings).await?;
        }
        self.store(settings).await
    }

    async fn line(&mut self, line: &Bytes, settings: &mut Settings) -> Result<()> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        match write_of(line, &self.id_field) {
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

    /// A bad line ends the COPY; what stands before it is stored.
    async fn refuse(&mut self, error: Error, line: u64, settings: &mut Settings) -> Result<()> {
        self.store(settings).await?;
        Err(error.context(format!("line {line}")))
    }

    /// Sends the batch on its way, once the one before has arrived.
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
        // A first poll starts the work; it goes on while the next lines are read.
        if let std::task::Poll::Ready(reply) = futures::poll!(writing.as_mut()) {
            return self.arrived(reply?, documents, settings);
        }
        self.writing = Some((writing, documents));
        Ok(())
    }

    /// Waits for the batch on its way.
    async fn arrive(&mut self, settings: &mut Settings) -> Result<()> {
        // Kept in its place while it is waited for: an interrupt must not forget what is on its way.
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

    /// Stores everything taken so far.
    async fn store(&mut self, settings: &mut Settings) -> Result<()> {
        self.send(settings).await?;
        self.arrive(settings).await
    }

    /// An error with the name of the COPY and what of it is stored.
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

/// Cuts lines out of pieces.
#[derive(Default)]
struct Lines {
    buffer: BytesMut,
    /// How much of the buffer is known to have no end of a line.
    searched: usize,
    /// The number of the line that was returned last, from 1.
    number: u64,
    /// `\.` on a line of its own was seen: psql's end of the data.
    ended: bool,
}

impl Lines {
    fn push(&mut self, data: &[u8]) {
        if !self.ended {
            self.buffer.extend_from_slice(data);
        }
    }

    /// The next whole line.
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

    /// What is left at the end of the data.
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
    let message = format!("a document of {bytes} bytes or more, the limit is {DOCUMENT_BYTES_MAX}");
    Error::new(ErrorCode::OverLimit, message)
}

/// The write of a line: its document under the id that its field holds.
fn write_of(line: &[u8], id_field: &str) -> Result<Write> {
    if line.len() > DOCUMENT_BYTES_MAX {
        return Err(too_long(line.len()));
    }
    let document = Value::parse_json(line)?;
    let invalid = |message: String| Error::new(ErrorCode::InvalidText, message);
    let Value::Object(object) = &document else {
        return Err(invalid("the document is no JSON object, so it has no id".into()));
    };
    let id = match object.get(id_field) {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(number)) if number.as_i128().is_some() => number.to_string(),
        Some(_) => return Err(invalid(format!("field {id_field} is no string and no integer"))),
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
    fn lines_are_the_same_however_they_are_cut() {
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
    fn a_document_has_its_id_in_its_field() {
        let id = |line: &str, field: &str| write_of(line.as_bytes(), field).map(|write| write.id);
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
