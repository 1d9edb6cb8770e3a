//! The calls of one gRPC connection, and the time limit after which a connection without calls
//! ends. Without this limit, a client that only answers pings would stay connected for ever.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use proto::lock::lock;
use tokio::time::{Instant, Sleep, sleep_until};

use super::process::ClientCapacity;
use super::refusals::{Limit, Refusals};

/// The time within which a connection must have its first admitted call.
const FIRST_WITHIN: Duration = Duration::from_secs(30);

/// The counts of the calls of one connection.
#[derive(Debug)]
pub struct Calls(Mutex<Counts>);

/// The counts of a connection's calls.
#[derive(Debug)]
struct Counts {
    open: u32,
    /// True if a call was admitted.
    any: bool,
    /// The number of open calls of users, without those of public services.
    open_of_users: u32,
    /// The number of all calls of users, including refused ones.
    of_users: u64,
    /// The number of all refused calls.
    refused: u64,
    /// The task to wake at the next call.
    waiting: Option<Waker>,
    /// The beginning of the connection, or the end of its last call.
    since: Instant,
}

/// The counts of a connection's calls at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallCounts {
    /// True if a call of a user is open.
    pub is_open: bool,
    /// The number of all calls of users, including refused ones.
    pub of_users: u64,
    /// The number of all refused calls.
    pub refused: u64,
}

impl Counts {
    /// Returns the counts as the values that callers see.
    fn seen(&self) -> CallCounts {
        let is_open = self.open_of_users > 0;
        CallCounts { is_open, of_users: self.of_users, refused: self.refused }
    }
}

/// An admitted call, which ends on drop.
pub struct OpenCall {
    calls: Arc<Calls>,
    is_of_user: bool,
}

impl Calls {
    /// Returns the counts of a new connection.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Counts {
            open: 0,
            any: false,
            open_of_users: 0,
            of_users: 0,
            refused: 0,
            waiting: None,
            since: Instant::now(),
        })))
    }

    /// Begins a call of a user.
    pub fn begin(self: &Arc<Self>) -> OpenCall {
        let mut counts = lock(&self.0);
        (counts.open, counts.any) = (counts.open + 1, true);
        counts.open_of_users += 1;
        counts.of_users += 1;
        if let Some(waiting) = counts.waiting.take() {
            waiting.wake();
        }
        OpenCall { calls: Arc::clone(self), is_of_user: true }
    }

    /// Begins a call of a public service, which keeps the connection open.
    pub fn begin_of_anybody(self: &Arc<Self>) -> OpenCall {
        let mut counts = lock(&self.0);
        (counts.open, counts.any) = (counts.open + 1, true);
        OpenCall { calls: Arc::clone(self), is_of_user: false }
    }

    /// Records that a call was refused because its sender is unknown.
    pub fn refuse(&self) {
        lock(&self.0).refused += 1;
    }

    /// Records that a call of a user was refused because of a limit.
    pub fn refuse_user(&self) {
        let mut counts = lock(&self.0);
        counts.refused += 1;
        counts.of_users += 1;
    }

    /// Returns the counts of calls.
    pub fn counts(&self) -> CallCounts {
        lock(&self.0).seen()
    }

    /// Returns the counts of calls. The next call of a user wakes the task of `waker`.
    pub fn counts_and_wake(&self, waker: &Waker) -> CallCounts {
        let mut counts = lock(&self.0);
        counts.waiting = Some(waker.clone());
        counts.seen()
    }

    /// Returns the number of open calls.
    #[cfg(test)]
    pub fn open(&self) -> u32 {
        lock(&self.0).open
    }

    /// Returns the time at which the connection ends unless a call begins before; `None` while a
    /// call is open.
    fn ends_at(&self, idle: Duration) -> Option<Instant> {
        let counts = lock(&self.0);
        let most = if counts.any { idle } else { FIRST_WITHIN.min(idle) };
        (counts.open == 0).then(|| counts.since + most)
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut counts = lock(&self.calls.0);
        (counts.open, counts.since) = (counts.open - 1, Instant::now());
        counts.open_of_users -= u32::from(self.is_of_user);
    }
}

/// A timer that ends a connection without calls.
pub struct IdleTimer {
    calls: Arc<Calls>,
    idle: Option<Duration>,
    refusals: Refusals,
    next_look: Pin<Box<Sleep>>,
}

impl IdleTimer {
    /// Creates a timer for the calls of a connection, with the limits of the process.
    pub fn new(calls: Arc<Calls>, flow: &ClientCapacity) -> Self {
        let idle = flow.limits.grpc_idle;
        let first = FIRST_WITHIN.min(idle.unwrap_or(FIRST_WITHIN));
        let next_look = Box::pin(sleep_until(Instant::now() + first));
        Self { calls, idle, refusals: flow.refusals.clone(), next_look }
    }

    /// Returns true if the connection has had no call for too long. Otherwise the task is woken
    /// when that is the case.
    pub fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        // Without the setting, only the first call has a time limit.
        let far = Duration::from_secs(1 << 30);
        while self.next_look.as_mut().poll(context).is_ready() {
            let (now, idle) = (Instant::now(), self.idle.unwrap_or(far));
            let next = match self.calls.ends_at(idle) {
                Some(end) if end <= now => {
                    self.refusals.count(Limit::GrpcIdle);
                    return true;
                }
                Some(end) => end,
                None => now + idle,
            };
            self.next_look.as_mut().reset(next);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::ClientLimits;

    async fn ends_after(quiet: &mut IdleTimer) -> Duration {
        let began = Instant::now();
        std::future::poll_fn(|context| match quiet.is_over(context) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await;
        began.elapsed()
    }

    fn quiet(idle: u64) -> (Arc<Calls>, IdleTimer, Arc<ClientCapacity>) {
        let grpc_idle = (idle > 0).then(|| Duration::from_secs(idle));
        let flow = ClientCapacity::new(ClientLimits { grpc_idle, ..ClientLimits::default() });
        let calls = Calls::new();
        (Arc::clone(&calls), IdleTimer::new(calls, &flow), flow)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_without_a_first_call_and_after_its_last_one() {
        let (_calls, mut silent, flow) = quiet(600);
        assert_eq!(ends_after(&mut silent).await, FIRST_WITHIN);
        assert!(flow.refusals.by_setting().any(|counted| counted == ("grpc_idle_s", 1)));
        let (calls, mut used, _flow) = quiet(600);
        let call = calls.begin();
        let ends = async {
            tokio::time::sleep(Duration::from_secs(1000)).await;
            drop(call);
        };
        let (ended, ()) = tokio::join!(ends_after(&mut used), ends);
        // The check during the call is up to one limit before its end.
        assert!((1600..=2200).contains(&ended.as_secs()), "{ended:?}");
        let (calls, mut kept, _flow) = quiet(0);
        drop(calls.begin());
        let days = Duration::from_secs(1 << 20);
        assert!(tokio::time::timeout(days, ends_after(&mut kept)).await.is_err(), "no such limit");
    }
}
