//! The pace at which a gRPC connection is read that asks for nothing.
//!
//! Frames that belong to no call that was let in (pings, settings, resets, headers without an end) cost as much of a processor as those of
//! calls, and HTTP/2 has no limit of their number. A connection may send some of them at once; beyond that it is read slowly, and its client
//! waits for room in its socket. An open call of a user lifts this limit, and each new one gives all of the room back. Calls that are refused have a
//! limit of their own, which nothing lifts.
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
/// Refused calls that a connection may have in a second.
const REFUSED_PER_SECOND: u32 = 100;
/// Bytes and refused calls at once, as the time that they would take.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The pace of a connection.
pub struct ReadPace {
    calls: Arc<Calls>,
    /// The number of calls of users, at the last look.
    of_users: u64,
    /// The number of those that were refused.
    refused: u64,
    /// The time at which all bytes so far would have been read at the usual pace.
    bytes_due: Instant,
    /// The time at which all calls so far would have been refused at the usual pace.
    refused_due: Instant,
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReadPace {
    /// The pace of a connection with these calls.
    pub fn new(calls: Arc<Calls>) -> Self {
        let now = Instant::now();
        Self { calls, of_users: 0, refused: 0, bytes_due: now, refused_due: now, pause: None }
    }

    /// Waits until the connection may be read.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            self.look(context);
            let due = self.bytes_due.max(self.refused_due);
            let Some(next) = due.checked_sub(AT_ONCE).filter(|next| *next > Instant::now()) else {
                self.pause = None;
                return Poll::Ready(());
            };
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep_until(next)));
            if pause.deadline() != next {
                pause.as_mut().reset(next);
            }
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Counts bytes that were read.
    pub fn count(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let time = bytes * Duration::from_secs(1) / BYTES_PER_SECOND;
        self.bytes_due = self.bytes_due.max(Instant::now()) + time;
    }

    /// Takes note of the calls since the last look. The next one wakes the task.
    fn look(&mut self, context: &Context<'_>) {
        let now = Instant::now();
        let seen = self.calls.look(context.waker());
        if seen.is_open || seen.of_users != self.of_users {
            self.bytes_due = now;
        }
        let refused = u32::try_from(seen.refused - self.refused).unwrap_or(u32::MAX);
        let time = refused * Duration::from_secs(1) / REFUSED_PER_SECOND;
        self.refused_due = self.refused_due.max(now) + time;
        (self.of_users, self.refused) = (seen.of_users, seen.refused);
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
        drop(calls.begin_of_anybody());
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

    #[tokio::test(start_paused = true)]
    async fn refused_calls_slow_a_connection_also_beside_an_open_call() {
        let calls = Calls::new();
        let mut pace = ReadPace::new(Arc::clone(&calls));
        let _call = calls.begin();
        let begun = Instant::now();
        for _ in 0..3 * REFUSED_PER_SECOND {
            poll_fn(|context| pace.poll_ready(context)).await;
            calls.refuse();
        }
        let took = begun.elapsed();
        assert!((1_900..2_100).contains(&took.as_millis()), "{took:?}");
    }
}
