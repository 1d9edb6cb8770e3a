//! The pace at which a gRPC connection without calls is read.
//!
//! Frames that belong to no call that was let in (pings, settings, resets, refused calls, headers without an end) cost as much of a processor as
//! those of calls, and HTTP/2 has no limit of their number. A connection may send some of them at once; beyond that it is read slowly, and
//! its client waits for room in its socket. An open call lifts the limit, and each new one gives all of the room back.
//!
//! The algorithm is the generic cell rate algorithm (ITU-T I.371), as for new connections (`listen.rs`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::calls::Calls;

/// Bytes that a connection without calls may send in a second.
const BYTES_PER_SECOND: u32 = 64 << 10;
/// Bytes that it may send at once, as the time that they would take.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The pace of a connection.
pub struct ReadPace {
    calls: Arc<Calls>,
    /// The number of calls at the last look.
    begun: u64,
    /// The time at which all bytes so far would have been read at the usual pace.
    due: Instant,
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReadPace {
    /// The pace of a connection with these calls.
    pub fn new(calls: Arc<Calls>) -> Self {
        Self { calls, begun: 0, due: Instant::now(), pause: None }
    }

    /// Waits until the connection may be read.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(pause) = &mut self.pause
                && pause.as_mut().poll(context).is_pending()
                && !self.has_call(context)
            {
                return Poll::Pending;
            }
            self.pause = None;
            let next = self.due.checked_sub(AT_ONCE).unwrap_or(self.due);
            if next <= Instant::now() || self.has_call(context) {
                return Poll::Ready(());
            }
            self.pause = Some(Box::pin(sleep_until(next)));
        }
    }

    /// Counts bytes that were read.
    pub fn count(&mut self, bytes: usize) {
        let now = Instant::now();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.due = self.due.max(now) + bytes * Duration::from_secs(1) / BYTES_PER_SECOND;
    }

    /// True if a call is open or was begun since the last look, which starts the count anew. The next call wakes the task.
    fn has_call(&mut self, context: &Context<'_>) -> bool {
        let (is_open, begun) = self.calls.look(context.waker());
        let is_new = std::mem::replace(&mut self.begun, begun) != begun;
        if is_open || is_new {
            self.due = Instant::now();
        }
        is_open || is_new
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Reads pieces for a second, as long as the pace allows them; returns the number of bytes.
    async fn read_for_a_second(pace: &mut ReadPace) -> u32 {
        let (begun, mut bytes) = (Instant::now(), 0);
        let reads = async {
            while begun.elapsed() < Duration::from_secs(1) && bytes < 10 << 20 {
                poll_fn(|context| pace.poll_ready(context)).await;
                pace.count(1 << 10);
                bytes += 1 << 10;
            }
        };
        let _over = tokio::time::timeout(Duration::from_secs(1), reads).await;
        bytes
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_calls_is_read_slowly_and_one_with_calls_at_once() {
        let calls = Calls::new();
        let mut pace = ReadPace::new(Arc::clone(&calls));
        let usual = BYTES_PER_SECOND;
        let first = read_for_a_second(&mut pace).await;
        assert!((2 * usual..2 * usual + 4096).contains(&first), "{first} bytes");
        let then = read_for_a_second(&mut pace).await;
        assert!((usual - 4096..usual + 4096).contains(&then), "{then} bytes");
        let call = calls.begin();
        assert_eq!(read_for_a_second(&mut pace).await, 10 << 20, "a call is open");
        drop(call);
        drop(calls.begin());
        let after = read_for_a_second(&mut pace).await;
        assert!((2 * usual..2 * usual + 8192).contains(&after), "{after} bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_begins_wakes_a_connection_that_waits() {
        let calls = Calls::new();
        let mut pace = ReadPace::new(Arc::clone(&calls));
        pace.count(100 * BYTES_PER_SECOND as usize);
        let begun = Instant::now();
        let begins = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            calls.begin()
        };
        let (_call, ()) = tokio::join!(begins, poll_fn(|context| pace.poll_ready(context)));
        assert_eq!(begun.elapsed(), Duration::from_millis(10));
    }
}
