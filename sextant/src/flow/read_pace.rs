//! The rate at which the server reads a gRPC connection without calls.
//!
//! Some frames belong to no call of a user: pings, settings, resets, headers without an end. They
//! take as much processor time as frames of calls, and HTTP/2 does not limit their number. A
//! connection may send some of them at once. Beyond this allowance, the server reads from the
//! connection slowly, so that its client must wait before it can send more. An open call of a
//! user lifts this limit, and each new call restores the whole allowance. Calls that the login
//! policy refuses have a separate limit, which is never lifted. These calls are counted after
//! each read. Calls of unknown paths are counted by their bytes only.
//!
//! When a call ends early, the rest of its message is still in flight, in front of the next call.
//! The end of a user's call therefore adds to the allowance all bytes that a connection may send
//! ahead. The refusal of a user above a limit adds the same number. Refusals of unknown clients
//! together add the bytes of only one message, until a call of a user arrives.
//!
//! The algorithm is the generic cell rate algorithm (ITU-T I.371), as for new connections
//! (`listen.rs`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::calls::{CallCounts, Calls};

/// The maximum size of a request's headers, in bytes.
pub const HEADER_LIST_BYTES_MAX: u32 = 16 << 10;
/// The number of bytes that a client may send ahead of one call.
pub const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The number of bytes that a client may send ahead of all calls of a connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// The number of bytes that a connection without calls may send per second, which is enough for
/// some hundred frames.
const BYTES_PER_SECOND: u32 = 4 << 10;
/// The number of bytes that a connection without calls may send at once: the headers of a first
/// call.
const BYTES_AT_ONCE: u32 = HEADER_LIST_BYTES_MAX;
/// The number of refused calls that a connection may have per second.
const REFUSED_PER_SECOND: u32 = 50;
/// The number of refused calls that a connection may have at once. It suffices for a user whose
/// program has twice as many callers as the user may have calls.
const REFUSED_AT_ONCE: u32 = 100;

/// The limiter of the rate at which one connection is read.
pub struct ReadPace {
    calls: Arc<Calls>,
    /// The counts of calls when the limiter last checked them.
    seen: CallCounts,
    /// The time at which all bytes so far would have been read if they were read exactly at the
    /// limit's rate.
    bytes_due: Instant,
    /// The time at which all refused calls so far would have been refused if they came exactly at
    /// the limit's rate.
    refused_due: Instant,
    /// The number of further bytes that the limit does not count, since they may belong to calls
    /// that have ended.
    left_bytes: u32,
    /// The number of bytes that refusals of unknown clients may still add to `left_bytes`.
    refusals_bytes: u32,
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReadPace {
    /// Returns the limiter of a connection with these calls.
    pub fn new(calls: Arc<Calls>) -> Self {
        let now = Instant::now();
        Self {
            calls,
            seen: CallCounts::default(),
            bytes_due: now,
            refused_due: now,
            left_bytes: 0,
            refusals_bytes: STREAM_WINDOW_BYTES,
            pause: None,
        }
    }

    /// Waits until the connection may be read, or until a call of a user begins.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let seen = self.calls.counts();
        self.note_calls(seen);
        while self.next_read_at() > Instant::now() {
            let seen = self.calls.counts_and_wake(context.waker());
            self.note_calls(seen);
            let next = self.next_read_at();
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep_until(next)));
            if pause.deadline() != next {
                pause.as_mut().reset(next);
            }
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        self.pause = None;
        Poll::Ready(())
    }

    /// Counts bytes that were read from the connection.
    pub fn count(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let counted = bytes.saturating_sub(self.left_bytes);
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        if counted > 0 {
            self.bytes_due =
                self.bytes_due.max(Instant::now()) + time_at_rate(counted, BYTES_PER_SECOND);
        }
    }

    /// Returns the time at which the connection may be read again.
    fn next_read_at(&self) -> Instant {
        // The clock cannot represent times before its beginning.
        let less = |due: Instant, at_once| due.checked_sub(at_once).unwrap_or(due);
        let bytes = less(self.bytes_due, time_at_rate(BYTES_AT_ONCE, BYTES_PER_SECOND));
        bytes.max(less(self.refused_due, time_at_rate(REFUSED_AT_ONCE, REFUSED_PER_SECOND)))
    }

    /// Adjusts the limits to the calls that have begun or were refused since the last check.
    fn note_calls(&mut self, seen: CallCounts) {
        let refused = u32::try_from(seen.refused - self.seen.refused).unwrap_or(u32::MAX);
        if refused > 0 {
            let time = time_at_rate(refused, REFUSED_PER_SECOND);
            self.refused_due = self.refused_due.max(Instant::now()) + time;
        }
        if seen.is_open || seen.of_users != self.seen.of_users {
            self.bytes_due = Instant::now();
            (self.left_bytes, self.refusals_bytes) = (CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES);
        } else if refused > 0 {
            let more = std::mem::take(&mut self.refusals_bytes);
            self.left_bytes = (self.left_bytes + more).min(CONNECTION_WINDOW_BYTES);
        }
        self.seen = seen;
    }
}

/// Returns the time that `number` bytes or calls take at a rate of `per_second`.
fn time_at_rate(number: u32, per_second: u32) -> Duration {
    number * Duration::from_secs(1) / per_second
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// The maximum number of bytes that a test reads in a second.
    const MUCH: u32 = 100 << 20;

    /// Reads pieces for a second, when the limit allows them; returns the number of bytes.
    async fn read_for_a_second(pace: &mut ReadPace) -> u32 {
        let (begun, mut bytes) = (Instant::now(), 0);
        let reads = async {
            while begun.elapsed() < Duration::from_secs(1) && bytes < MUCH {
                poll_fn(|context| pace.poll_ready(context)).await;
                pace.count(1 << 10);
                bytes += 1 << 10;
            }
        };
        let _over = tokio::time::timeout(Duration::from_secs(1), reads).await;
        bytes
    }

    /// True if `bytes` is close to `expected`.
    fn is_about(bytes: u32, expected: u32) -> bool {
        bytes.abs_diff(expected) <= 1024
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_calls_is_read_slowly_and_one_with_calls_at_once() {
        let calls = Calls::new();
        let mut pace = ReadPace::new(Arc::clone(&calls));
        let first = read_for_a_second(&mut pace).await;
        assert!(is_about(first, BYTES_AT_ONCE + BYTES_PER_SECOND), "{first} bytes");
        drop(calls.begin_of_anybody());
        let then = read_for_a_second(&mut pace).await;
        assert!(is_about(then, BYTES_PER_SECOND), "{then} bytes");
        let call = calls.begin();
        assert_eq!(read_for_a_second(&mut pace).await, MUCH, "a call is open");
        drop(call);
        let after = read_for_a_second(&mut pace).await;
        let expected = CONNECTION_WINDOW_BYTES + BYTES_AT_ONCE + BYTES_PER_SECOND;
        assert!(is_about(after, expected), "{after} bytes: its message may be on its way");
        let late = read_for_a_second(&mut pace).await;
        assert!(is_about(late, BYTES_PER_SECOND), "{late} bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn only_many_refusals_are_slowed() {
        let calls = Calls::new();
        let mut pace = ReadPace::new(Arc::clone(&calls));
        calls.refuse();
        let one = read_for_a_second(&mut pace).await;
        assert!(
            is_about(one, STREAM_WINDOW_BYTES + BYTES_AT_ONCE + BYTES_PER_SECOND),
            "{one} bytes"
        );
        calls.refuse();
        let late = read_for_a_second(&mut pace).await;
        assert!(is_about(late, BYTES_PER_SECOND), "{late} bytes: a refusal has given all");
        calls.refuse_user();
        let user = read_for_a_second(&mut pace).await;
        let expected = CONNECTION_WINDOW_BYTES + BYTES_AT_ONCE + BYTES_PER_SECOND;
        assert!(is_about(user, expected), "{user} bytes: a user's message is on its way");
        calls.refuse();
        let again = read_for_a_second(&mut pace).await;
        assert!(is_about(again, STREAM_WINDOW_BYTES + BYTES_PER_SECOND), "{again} bytes");
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

    #[tokio::test(start_paused = true)]
    async fn refusals_slow_even_an_open_call() {
        let calls = Calls::new();
        let mut pace = ReadPace::new(Arc::clone(&calls));
        let _call = calls.begin();
        let begun = Instant::now();
        for _ in 0..REFUSED_AT_ONCE + 2 * REFUSED_PER_SECOND {
            poll_fn(|context| pace.poll_ready(context)).await;
            calls.refuse_user();
        }
        let took = begun.elapsed();
        assert!((1_900..2_100).contains(&took.as_millis()), "{took:?}");
    }
}
