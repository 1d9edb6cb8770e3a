//! Runs blocking work alternately with the other tasks, in an order drawn from a seed.
//!
//! Each call with blocking work is a *job* with a thread, but only one thread runs at a time (it
//! has the turn): that of the runtime, or that of one job. A job returns the turn at a random
//! *yield point*. Each use of a lock is a yield point (`proto::lock`), and so is each operation
//! of a simulated file, which takes the lock of its disk. The runtime's thread gives the turn to
//! some job between its tasks, and at its own yield points. So work runs later than it was
//! spawned, and epochs, rollbacks and reads can happen between its write, its sync and its
//! publication. Equal seeds give equal orders.
//!
//! A thread that needs a locked lock lets others run until the lock is free. If no thread can
//! free it, the thread panics.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use super::world::InlineSpawner;
use crate::env::panics::Panic;
use crate::env::spawning::{BoxFuture, Spawner, Task};
use crate::lock::lock;
use crate::turn::{self, ThreadTurns};

/// At one in this number of yield points, a blocking job returns the turn.
const WORK_SWITCHES_ONE_IN: u8 = 3;
/// At one in this number of yield points, the runtime's thread gives the turn to a blocking job.
const RUNTIME_SWITCHES_ONE_IN: u8 = 6;
/// The number of failed attempts to take a lock, by all threads together and without progress,
/// that counts as a deadlock.
const VAIN_TRIES_MAX: u32 = 1 << 20;

/// The control over which thread of a simulation runs. Belongs to the runtime's thread; after it
/// is dropped, the remaining work runs freely.
pub struct Turns(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    random: fastrand::Rng,
    /// The blocking job that has the turn; `None` if the runtime's thread has it.
    holder: Option<u64>,
    /// The blocking jobs that have not ended.
    works: BTreeSet<u64>,
    next: u64,
    /// True while a task of the runtime runs the work step by step.
    is_pumped: bool,
    /// True once the remaining work runs freely.
    is_free: bool,
    vain_tries: u32,
    switches: u64,
    panic: Option<Panic>,
}

impl Turns {
    /// Creates a control whose order depends on the seed. The calling thread becomes the
    /// runtime's thread.
    pub fn new(seed: u64) -> Self {
        let state = State {
            random: fastrand::Rng::with_seed(seed ^ 0x7412),
            holder: None,
            works: BTreeSet::new(),
            next: 0,
            is_pumped: false,
            is_free: false,
            vain_tries: 0,
            switches: 0,
            panic: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        turn::set(Some(Arc::new(RuntimeHooks(Arc::downgrade(&shared)))));
        Self(shared)
    }

    /// Returns the spawner whose blocking work this control runs.
    pub fn spawner(&self) -> Arc<dyn Spawner> {
        Arc::new(TurnSpawner(Arc::clone(&self.0)))
    }

    /// Returns true while some blocking work has not ended.
    pub fn is_busy(&self) -> bool {
        !self.0.state().works.is_empty()
    }

    /// Returns how often work was interrupted so far.
    pub fn switches(&self) -> u64 {
        self.0.state().switches
    }

    /// Resumes the panic of blocking work without a waiting caller, if there was one.
    ///
    /// # Panics
    /// If there was one.
    pub fn resume_panic(&self) {
        let panic = self.0.state().panic.take();
        if let Some(panic) = panic {
            panic.resume();
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        turn::set(None);
        self.0.state().is_free = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Not a yield point, because it decides about them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a random blocking job until it returns the turn; returns false if there is none.
    fn step(&self) -> bool {
        let mut state = self.state();
        if state.is_free || state.holder.is_some() || state.works.is_empty() {
            return false;
        }
        let at = {
            let works = state.works.len();
            state.random.usize(0..works)
        };
        state.holder = state.works.iter().nth(at).copied();
        self.changed.notify_all();
        while state.holder.is_some() {
            state = self.wait(state);
        }
        true
    }

    /// Waits until a blocking job has the turn.
    fn wait_for_turn(&self, work: u64) {
        let mut state = self.state();
        while state.holder != Some(work) && !state.is_free {
            state = self.wait(state);
        }
    }

    /// Returns the turn to the runtime's thread, and waits until this work has it again.
    fn return_turn(&self, work: u64) {
        {
            let mut state = self.state();
            if state.is_free {
                return;
            }
            (state.holder, state.switches) = (None, state.switches + 1);
            self.changed.notify_all();
        }
        self.wait_for_turn(work);
    }

    /// Draws whether a thread switches at a yield point, with a probability of one in `one_in`.
    fn draws_switch(&self, one_in: u8) -> bool {
        let mut state = self.state();
        state.vain_tries = 0;
        !state.is_free && state.random.u8(0..one_in) == 0
    }

    /// Counts a failed attempt to take a lock. Returns false if the work runs freely now.
    fn count_failed_lock(&self) -> bool {
        let mut state = self.state();
        state.vain_tries += 1;
        assert!(state.vain_tries < VAIN_TRIES_MAX, "a deadlock: nobody can free a lock");
        !state.is_free
    }

    fn end(&self, work: u64, ended: Result<(), Panic>) {
        let mut state = self.state();
        state.works.remove(&work);
        state.holder = None;
        if let Err(panic) = ended {
            state.panic.get_or_insert(panic);
        }
        self.changed.notify_all();
    }

    /// Gives the turn to blocking jobs until all of them have ended.
    async fn run_all_jobs(self: Arc<Self>) {
        loop {
            {
                let mut state = self.state();
                if state.works.is_empty() || state.is_free {
                    state.is_pumped = false;
                    return;
                }
            }
            // A guard in the head of the loop would live as long as the loop.
            let turns = self.state().random.u8(0..4);
            for _ in 0..turns {
                self.step();
            }
            tokio::task::yield_now().await;
        }
    }
}

/// The hooks that run at each use of a lock on the runtime's thread.
struct RuntimeHooks(Weak<Shared>);

impl ThreadTurns for RuntimeHooks {
    fn may_switch(&self) {
        if let Some(shared) = self.0.upgrade()
            && shared.draws_switch(RUNTIME_SWITCHES_ONE_IN)
        {
            shared.step();
        }
    }

    fn yield_while_locked(&self) -> bool {
        let Some(shared) = self.0.upgrade() else { return false };
        if !shared.count_failed_lock() {
            return false;
        }
        assert!(shared.step(), "a deadlock: the runtime's thread waits for a lock that it has");
        true
    }
}

/// The hooks that run at each use of a lock in a blocking job.
struct JobHooks {
    shared: Arc<Shared>,
    number: u64,
}

impl ThreadTurns for JobHooks {
    fn may_switch(&self) {
        if self.shared.draws_switch(WORK_SWITCHES_ONE_IN) {
            self.shared.return_turn(self.number);
        }
    }

    fn yield_while_locked(&self) -> bool {
        let goes_on = self.shared.count_failed_lock();
        self.shared.return_turn(self.number);
        goes_on
    }
}

struct TurnSpawner(Arc<Shared>);

impl Spawner for TurnSpawner {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        InlineSpawner.spawn(name, future)
    }

    #[allow(clippy::disallowed_methods, reason = "this is the seam that the lint points to")]
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        let runtime = Handle::current();
        let (number, pump) = {
            let mut state = self.0.state();
            let number = state.next;
            state.next += 1;
            state.works.insert(number);
            (number, !std::mem::replace(&mut state.is_pumped, true))
        };
        if pump {
            InlineSpawner.spawn("turns", Box::pin(Arc::clone(&self.0).run_all_jobs())).detach();
        }
        let shared = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let _tasks = runtime.enter();
            turn::set(Some(Arc::new(JobHooks { shared: Arc::clone(&shared), number })));
            shared.wait_for_turn(number);
            let ended = Panic::catch(work);
            turn::set(None);
            shared.end(number, ended);
        });
    }

    fn pause(&self, _time: Duration) {
        // A pause is a yield point too.
        drop(lock(&Mutex::new(())));
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
