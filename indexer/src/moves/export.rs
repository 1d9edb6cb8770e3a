//! The source of a move: sends the parts of a slice's files that the target lacks, in pieces, as
//! fast as the target reads them and the rate limit allows. While some pieces are sent, the next
//! ones are read.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use proto::Result;
use proto::rpc::export::{ExportMessage, ExportRequest, FilePiece};
use tokio::time::Instant;

use storage::{Export, PartRange};

/// The maximum number of bytes of a piece.
const PIECE_BYTES: u64 = 1 << 20;
/// The number of bytes that are read together on one thread (a *load*): large enough that a
/// thread switch is cheap in comparison.
const LOAD_BYTES: u64 = 4 << 20;
/// The maximum number of loads that are read ahead of the pieces that are sent.
const LOADS_AHEAD: usize = 2;

/// An export of a slice's files in progress.
struct Sending {
    head: Option<ExportMessage>,
    loads: BoxStream<'static, Result<Vec<FilePiece>>>,
    /// Pieces that were read from the files and not sent yet.
    read: VecDeque<FilePiece>,
    pace: RateLimiter,
}

/// Sends the parts of files that the target lacks, at a limited rate.
pub fn send(
    export: Export,
    request: &ExportRequest,
    bytes_per_s_max: u64,
) -> impl Stream<Item = Result<ExportMessage>> + use<> {
    // Files from an earlier opening of the engine may have the same numbers and other contents.
    let same = request.opening == Some(export.head.opening);
    let has = |file: &u64| same && request.have.contains(file);
    let files = export.head.files.iter().filter(|(file, _)| !has(file)).copied().collect();
    let head = Some(ExportMessage::Head(export.head.clone()));
    let pace = RateLimiter { bytes_per_s_max, began: Instant::now(), bytes: 0 };
    let loads = stream::iter(Loads { files, offset: 0 });
    let loads = loads.map(move |load| export.read(load)).buffered(LOADS_AHEAD).boxed();
    let sending = Sending { head, loads, read: VecDeque::new(), pace };
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
        if let Some(head) = self.head.take() {
            return Ok(head);
        }
        while self.read.is_empty() {
            match self.loads.next().await {
                Some(load) => self.read.extend(load?),
                None => return Ok(ExportMessage::End),
            }
        }
        let Some(piece) = self.read.pop_front() else { return Ok(ExportMessage::End) };
        self.pace.wait_for_rate(piece.bytes.len() as u64).await;
        Ok(ExportMessage::Piece(piece))
    }
}

/// An iterator over the reads of file parts, in the order in which the parts are sent.
struct Loads {
    /// The remaining parts: the number of each file, and the length of its part. Reads of the first
    /// `offset` bytes of the first part are planned already.
    files: VecDeque<(u64, u64)>,
    offset: u64,
}

impl Iterator for Loads {
    type Item = Vec<PartRange>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut load, mut left) = (Vec::new(), LOAD_BYTES);
        while let Some((file, len)) = self.files.front().copied().filter(|_| left > 0) {
            let bytes = (len - self.offset).min(PIECE_BYTES).min(left);
            load.push(PartRange { file, offset: self.offset, bytes: bytes as usize });
            (self.offset, left) = (self.offset + bytes, left - bytes);
            if self.offset == len {
                self.files.pop_front();
                self.offset = 0;
            }
        }
        (!load.is_empty()).then_some(load)
    }
}

/// The rate limiter of an export, which counts the bytes sent since its beginning.
struct RateLimiter {
    bytes_per_s_max: u64,
    began: Instant,
    bytes: u64,
}

impl RateLimiter {
    /// Counts bytes, and waits until they may be sent.
    async fn wait_for_rate(&mut self, bytes: u64) {
        self.bytes += bytes;
        let due_ms = self.bytes.saturating_mul(1_000) / self.bytes_per_s_max.max(1);
        tokio::time::sleep_until(self.began + Duration::from_millis(due_ms)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_have_all_bytes_in_order_and_are_bounded() {
        let files = [(1, 10), (2, 3 * PIECE_BYTES + 1), (5, 9 * LOAD_BYTES), (9, 1), (11, 7)];
        let mut next: VecDeque<(u64, u64)> = files.into();
        let mut at = 0;
        for load in (Loads { files: next.clone(), offset: 0 }) {
            assert!(load.iter().map(|piece| piece.bytes as u64).sum::<u64>() <= LOAD_BYTES);
            for PartRange { file, offset, bytes } in load {
                let (expected, len) = next[0];
                assert_eq!((file, offset), (expected, at));
                assert!((1..=PIECE_BYTES).contains(&(bytes as u64)));
                at += bytes as u64;
                if at == len {
                    next.pop_front();
                    at = 0;
                }
            }
        }
        assert!(next.is_empty());
    }
}
