//! The source of a move: sends a slice's files piece by piece, as fast as the target reads them and the rate limit allows.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{Stream, stream};
use proto::Result;
use proto::rpc::export::{ExportMessage, ExportRequest, FilePiece};
use tokio::time::Instant;

use storage::Export;

/// Bytes of a piece; a few pieces are in flight at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// An export in progress.
struct Sending {
    export: Export,
    head_sent: bool,
    /// The files left to send, with their lengths; `offset` bytes of the first one were sent.
    files: VecDeque<(u64, u64)>,
    offset: u64,
    pace: Pace,
}

/// Sends the files that the target lacks, with a rate limit.
pub fn send(
    export: Export,
    request: &ExportRequest,
    bytes_per_s_max: u64,
) -> impl Stream<Item = Result<ExportMessage>> + use<> {
    // Files from an earlier opening of the engine may have the same numbers and other contents.
    let same = request.opening == Some(export.head.opening);
    let has = |file: &u64| same && request.have.contains(file);
    let files = export.head.files.iter().filter(|(file, _)| !has(file)).copied().collect();
    let pace = Pace { bytes_per_s_max, began: Instant::now(), bytes: 0 };
    let sending = Sending { export, head_sent: false, files, offset: 0, pace };
    stream::unfold(Some(sending), |sending| async {
        let mut sending = sending?;
        match sending.next().await {
            Ok(ExportMessage::End) => Some((Ok(ExportMessage::End), None)),
            Ok(message) => Some((Ok(message), Some(sending))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl Sending {
    async fn next(&mut self) -> Result<ExportMessage> {
        if !std::mem::replace(&mut self.head_sent, true) {
            return Ok(ExportMessage::Head(self.export.head.clone()));
        }
        let Some((file, len)) = self.files.front().copied() else { return Ok(ExportMessage::End) };
        let bytes = (len - self.offset).min(PIECE_BYTES);
        let read = self.export.read(file, self.offset, bytes as usize).await?;
        let piece = FilePiece::new(file, self.offset, read);
        self.offset += bytes;
        if self.offset == len {
            self.files.pop_front();
            self.offset = 0;
        }
        self.pace.after(bytes).await;
        Ok(ExportMessage::Piece(piece))
    }
}

/// Enforces the rate limit.
struct Pace {
    bytes_per_s_max: u64,
    began: Instant,
    bytes: u64,
}

impl Pace {
    async fn after(&mut self, bytes: u64) {
        self.bytes += bytes;
        let due_ms = self.bytes.saturating_mul(1_000) / self.bytes_per_s_max.max(1);
        tokio::time::sleep_until(self.began + Duration::from_millis(due_ms)).await;
    }
}
