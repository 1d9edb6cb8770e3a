//! Cuts the data of a COPY into pieces, each of which consists of complete lines, and checks the
//! lines of a piece. Pieces are checked independently, on any thread.
//!
//! The lines of a piece are numbered from 1, since a piece does not know how many lines precede
//! it. The caller processes the pieces in order and adds the number of earlier lines. The
//! documents of a piece share the memory of its text.

use bytes::{Bytes, BytesMut};
use proto::rpc::api::{CheckedWrite, CheckedWrites, too_long_error};
use proto::value::DOCUMENT_BYTES_MAX;
use proto::{Error, Result};

/// The minimum size of a piece (a group of lines), in bytes. It is so large that many documents
/// share one disk sync, and so small that single writes during a COPY do not wait long.
pub(super) const PIECE_BYTES: usize = 512 << 10;

/// The usual size of a client's message, in bytes.
const MESSAGE_BYTES: usize = 64 << 10;

/// The assumed size of a document in bytes, for an estimate of the number of documents in a
/// piece.
const SHORT_DOCUMENT_BYTES: usize = 64;

/// The maximum number of documents that are written together. A piece has more documents only if
/// they are tiny.
const BATCH_DOCUMENTS: usize = 8192;

/// The maximum length of a line without its newline, in bytes. It allows a document of the
/// maximum size and as much white space.
const LINE_BYTES_MAX: usize = 2 * DOCUMENT_BYTES_MAX;

/// The byte order mark (an invisible character at the start of a text) in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A buffer that collects data and cuts it into pieces of complete lines.
#[derive(Default)]
pub(in crate::pg) struct PieceBuffer {
    buffer: BytesMut,
    /// The number of bytes at the beginning of the buffer that are known to contain no newline.
    searched: usize,
    has_begun: bool,
}

/// A piece of the data that consists of complete lines. Only the last line of all data may lack
/// its newline.
#[derive(Debug)]
pub(in crate::pg) struct RowsProgress {
    text: Bytes,
    /// True for the first piece of all data.
    is_first: bool,
}

impl PieceBuffer {
    /// Adds data to the buffer.
    pub(in crate::pg) fn push(&mut self, data: &[u8]) {
        if self.has_begun && self.buffer.capacity() - self.buffer.len() < data.len() {
            // A long COPY fills the next piece as well: it is not copied while it grows.
            self.buffer.reserve(PIECE_BYTES.max(data.len()) + MESSAGE_BYTES);
        }
        self.buffer.extend_from_slice(data);
    }

    /// Returns the next piece; `None` if too little data has arrived.
    pub(in crate::pg) fn next(&mut self) -> Option<RowsProgress> {
        if self.buffer.len() < PIECE_BYTES {
            return None;
        }
        let is_end = |byte: &u8| *byte == b'\n';
        let from = self.searched.min(PIECE_BYTES);
        let end = match self.buffer[from..PIECE_BYTES].iter().rposition(is_end) {
            Some(end) => from + end,
            None => {
                let from = self.searched.max(PIECE_BYTES);
                let end = self.buffer[from..].iter().position(is_end).map(|end| from + end);
                let Some(end) = end else {
                    self.searched = self.buffer.len();
                    return None;
                };
                end
            }
        };
        self.searched = 0;
        let text = self.buffer.split_to(end + 1).freeze();
        Some(self.piece(text))
    }

    /// Returns all remaining data as a piece.
    pub(in crate::pg) fn rest(&mut self) -> RowsProgress {
        let text = std::mem::take(&mut self.buffer).freeze();
        self.piece(text)
    }

    /// Returns a piece with this text.
    fn piece(&mut self, text: Bytes) -> RowsProgress {
        RowsProgress { text, is_first: !std::mem::replace(&mut self.has_begun, true) }
    }

    /// Returns an error if an incomplete line is already longer than any document.
    pub(in crate::pg) fn check(&self) -> Result<()> {
        match self.buffer.len() > LINE_BYTES_MAX {
            true => Err(too_long_error(self.buffer.len())),
            false => Ok(()),
        }
    }
}

/// The documents of a checked piece, up to its first bad line.
#[derive(Debug, Default)]
pub(in crate::pg) struct CheckedPiece {
    /// The documents before the first bad line, in batches.
    pub(super) batches: Vec<CheckedWrites>,
    /// The number of lines in the piece, up to and including the bad line.
    pub(in crate::pg) lines: u64,
    /// The error of the bad line, if there is one.
    pub(super) error: Option<Error>,
    /// True if the piece ends with a line `\.`, by which psql ends the data.
    pub(super) ended: bool,
}

impl RowsProgress {
    /// Returns the size of the documents in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Checks the lines of the piece. The id of each document is the value of its field
    /// `id_field`.
    pub(in crate::pg) fn check(&self, id_field: &str) -> CheckedPiece {
        let mut checked = CheckedPiece::default();
        let mut batch =
            Vec::with_capacity((self.text.len() / SHORT_DOCUMENT_BYTES).min(BATCH_DOCUMENTS));
        let text = self.text.strip_suffix(b"\n").unwrap_or(&self.text);
        if self.text.is_empty() {
            return checked;
        }
        for line in text.split(|byte| *byte == b'\n') {
            checked.lines += 1;
            let mut line = line.trim_ascii();
            if self.is_first && checked.lines == 1 {
                // Some editors and systems begin a UTF-8 file with a byte order mark.
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            }
            match line {
                b"" => continue,
                b"\\." => {
                    checked.ended = true;
                    break;
                }
                _ => {}
            }
            match CheckedWrite::upsert_with_id_in(id_field, self.text.slice_ref(line)) {
                Ok(write) => batch.push(write),
                Err(error) => {
                    checked.error = Some(error);
                    break;
                }
            }
            if batch.len() == BATCH_DOCUMENTS {
                checked.batches.push(batch.drain(..).collect());
            }
        }
        if !batch.is_empty() {
            checked.batches.push(batch.into_iter().collect());
        }
        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the documents, the number of lines, and the number of the bad line of a text.
    fn read(text: &[u8], message_bytes: usize) -> (Vec<Bytes>, u64, Option<u64>) {
        let (mut pieces, mut documents, mut lines) = (PieceBuffer::default(), Vec::new(), 0);
        let mut take = |piece: RowsProgress| {
            let checked = piece.check("id");
            let writes = checked.batches.iter().flat_map(|batch| batch.writes());
            documents.extend(writes.map(|write| write.document().unwrap().clone()));
            lines += checked.lines;
            (checked.error.is_some() || checked.ended).then_some(checked.error.map(|_| lines))
        };
        let mut stopped = None;
        for message in text.chunks(message_bytes) {
            pieces.push(message);
            while stopped.is_none()
                && let Some(piece) = pieces.next()
            {
                stopped = take(piece);
            }
        }
        let stopped = stopped.or_else(|| take(pieces.rest()));
        (documents, lines, stopped.flatten())
    }

    fn line(n: usize) -> String {
        format!("{{\"id\":{n}, \"pad\":\"{}\"}}", "x".repeat(n % 50))
    }

    #[test]
    fn documents_do_not_depend_on_the_boundaries_of_messages_and_pieces() {
        let lines: Vec<String> = (0..30_000).map(line).collect();
        let text = format!("\u{feff}{}\r\n\n  {}", lines[..29_999].join("\n"), lines[29_999]);
        assert!(text.len() > 2 * PIECE_BYTES);
        for message_bytes in [1, 8191, PIECE_BYTES, text.len()] {
            let (documents, read_lines, bad) = read(text.as_bytes(), message_bytes);
            assert_eq!(documents, lines, "messages of {message_bytes}");
            assert_eq!((read_lines, bad), (30_001, None));
        }
    }

    #[test]
    fn lines_before_a_bad_line_are_stored() {
        for bad in [0, 7, 25_000] {
            let mut lines: Vec<String> = (0..30_000).map(line).collect();
            lines[bad] = "{\"id\":1".into();
            let (documents, _, at) = read(lines.join("\n").as_bytes(), 10_000);
            assert_eq!((documents.len(), at), (bad, Some(bad as u64 + 1)));
        }
    }

    #[test]
    fn the_end_mark_ends_the_data() {
        let (documents, lines, bad) = read(b"{\"id\":1}\n \\. \nbad\n", 3);
        assert_eq!((documents.len(), lines, bad), (1, 2, None));
        assert_eq!(read(b"", 1), (Vec::new(), 0, None));
        assert_eq!(read(b"\n\n", 1), (Vec::new(), 2, None));
    }

    #[test]
    fn an_unfinished_line_is_bounded() {
        let mut pieces = PieceBuffer::default();
        pieces.push(&vec![b' '; LINE_BYTES_MAX]);
        assert!(pieces.next().is_none() && pieces.check().is_ok());
        pieces.push(b"x");
        assert!(pieces.next().is_none() && pieces.check().is_err());
    }
}
