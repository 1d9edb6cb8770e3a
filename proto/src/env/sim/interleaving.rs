//! Runs the blocking work of many simulated processes in steps, between which simulated time
//! passes.
//!
//! Each call with blocking work is a *job*. A job runs immediately on the caller's thread, or in
//! steps. Each step ends at a random *yield point*, and the next one follows after a random
//! simulated time, mostly none. Each use of a lock is a yield point (`proto::lock`), and so is
//! each operation of a simulated file, which takes the lock of its disk. So epochs, rollbacks,
//! heartbeats and crashes can happen in the midst of a flush, between its write, its sync and its
//! publication. A job in steps has a separate thread (`coroutine.rs`), but only one thread runs
//! at a time. Equal seeds give equal orders.
//!
//! A thread that needs a locked lock lets the others run until the lock is free. If no thread can
//! free it, the run ends.
//!
//! A process ends with its runtime. Its blocking work then *unwinds* immediately: it gets a panic
//! at its yield point, so that its threads are free before the next process begins. The simulated
//! machine is down meanwhile, and accepts no file operation.
//!
//! Atomics are not yield points. They need none, because each is one counter, one flag or one
//! published value: no important decision depends on two atomics, and an `ArcSwap` is replaced by
//! one task, or under the lock of a writer. A protocol over several atomics would need a test of
//! its memory order, which this simulation does not examine.
//!
//! No debug check takes a lock, and redb is built without its internal checks, which read pages.
//! So a seed takes the same course in debug and release builds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use super::coroutine::{Coroutine, IdleThreads};
use super::pace::{PaceOdds, RateLimiter};
use crate::env::panics::Panic;
use crate::turn::{self, ThreadTurns};

/// At one in this number of its uses of locks, the simulation's thread first lets some work do a
/// step.
const OWN_SWITCHES_ONE_IN: u8 = 64;
/// The number of failed attempts to take a lock, by all threads together and without progress,
/// that counts as a deadlock.
const VAIN_TRIES_MAX: u32 = 1 << 16;
/// The number of failed attempts of one blocking job to take one lock that counts as a deadlock.
/// Each attempt takes a simulated millisecond.
const WORK_VAIN_TRIES_MAX: u32 = 30_000;
/// The simulated time after which work tries again to take a lock. Must be above zero: simulated
/// time does not advance while a task is ready, and the work that has the lock may wait for time
/// to pass.
const RETRY: Duration = Duration::from_millis(1);

/// The simulation's control over the order of blocking work. Belongs to the simulation's thread.
pub struct Interleaving(pub(super) Arc<Shared>);

/// The numbers of events in a simulation with interleaved work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterleavingCounts {
    /// Number of blocking jobs that ran in steps.
    pub works: u64,
    /// Number of pauses between two steps.
    pub pauses: u64,
    /// Number of blocking jobs that a crash has ended.
    pub cut_short: u64,
    /// Number of failed attempts to take a lock.
    pub vain_tries: u64,
}

pub(super) struct Shared {
    state: Mutex<State>,
    threads: IdleThreads,
}

struct State {
    random: fastrand::Rng,
    paces: PaceOdds,
    /// The blocking jobs that have not ended.
    works: BTreeMap<u64, Work>,
    next: u64,
    /// True while a step runs.
    is_running: bool,
    vain_tries: u32,
    counts: InterleavingCounts,
    panic: Option<Panic>,
}

struct Work {
    coroutine: Coroutine,
    process: Arc<SendingProcess>,
    pace: RateLimiter,
    /// The simulated time until the next step of the work.
    wait: Duration,
}

#[derive(Default)]
pub(super) struct SendingProcess {
    /// True once the runtime of the process has ended.
    pub has_ended: AtomicBool,
}

/// The payload of the panic with which the work of an ended process unwinds.
struct ProcessEnded;

impl Interleaving {
    /// Creates a control whose order of steps depends on the seed. The calling thread becomes the
    /// simulation's thread.
    pub fn new(seed: u64, paces: PaceOdds) -> Self {
        let state = State {
            random: fastrand::Rng::with_seed(seed ^ 0x1e4f),
            paces,
            works: BTreeMap::new(),
            next: 0,
            is_running: false,
            vain_tries: 0,
            counts: InterleavingCounts::default(),
            panic: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), threads: IdleThreads::default() });
        turn::set(Some(Arc::new(MainThreadHooks(Arc::downgrade(&shared)))));
        Self(shared)
    }

    /// Returns the numbers of events so far.
    pub fn counts(&self) -> InterleavingCounts {
        self.0.state().counts
    }

    /// Returns the first panic of work without a waiting caller, and forgets it.
    pub fn take_panic(&self) -> Option<Panic> {
        self.0.state().panic.take()
    }
}

impl Drop for Interleaving {
    fn drop(&mut self) {
        turn::set(None);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Not a yield point, because it decides about them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws how a blocking job is interrupted; `None` for work that runs without interruption.
    pub(super) fn draw_pace(&self) -> Option<RateLimiter> {
        let mut state = self.state();
        let paces = state.paces;
        paces.draw(&mut state.random)
    }

    /// Adds a blocking job; returns its number.
    pub(super) fn add(
        self: &Arc<Self>,
        process: &Arc<SendingProcess>,
        pace: RateLimiter,
        work: Box<dyn FnOnce() + Send>,
    ) -> u64 {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let (shared, runtime) = (Arc::downgrade(self), Handle::current());
        let mine = Arc::clone(process);
        let coroutine = self.threads.coroutine(Box::new(move |coroutine| {
            let _tasks = runtime.enter();
            let (coroutine, process) = (coroutine.clone(), mine);
            let vain_tries = AtomicU32::new(0);
            let turn = JobHooks { shared: shared.clone(), number, coroutine, process, vain_tries };
            turn::set(Some(Arc::new(turn)));
            let ended = Panic::catch(work);
            turn::set(None);
            if let (Err(panic), Some(shared)) = (ended, shared.upgrade())
                && !panic.is::<ProcessEnded>()
            {
                shared.state().panic.get_or_insert(panic);
            }
        }));
        let process = Arc::clone(process);
        let wait = pace.first_wait(&mut state.random);
        state.counts.works += 1;
        state.works.insert(number, Work { coroutine, process, pace, wait });
        number
    }

    /// Runs the next step of a blocking job.
    pub(super) fn step(&self, number: u64) {
        let coroutine = {
            let mut state = self.state();
            let Some(work) = state.works.get(&number) else { return };
            let coroutine = work.coroutine.clone();
            assert!(!std::mem::replace(&mut state.is_running, true), "one thread runs at a time");
            coroutine
        };
        let has_ended = coroutine.resume();
        let mut state = self.state();
        state.is_running = false;
        if has_ended {
            state.works.remove(&number);
            self.threads.reuse_thread(coroutine);
        } else {
            state.counts.pauses += 1;
        }
    }

    /// Runs the next step of a random blocking job; returns false if there is none.
    fn step_any(&self) -> bool {
        let number = {
            let mut state = self.state();
            let works = state.works.len();
            if works == 0 || state.is_running {
                return false;
            }
            let at = state.random.usize(0..works);
            state.works.keys().nth(at).copied()
        };
        number.inspect(|number| self.step(*number)).is_some()
    }

    /// Counts a failed attempt to take a lock. Returns false if there were so many that this is a
    /// deadlock.
    fn count_failed_lock(&self) -> bool {
        let mut state = self.state();
        state.vain_tries += 1;
        state.counts.vain_tries += 1;
        state.vain_tries < VAIN_TRIES_MAX
    }

    /// Records a panic with the message `what`, such as for a deadlock, which ends the run.
    fn report(&self, what: &str) {
        let panic = Panic::catch(|| panic!("{what}")).err();
        let mut state = self.state();
        state.panic = state.panic.take().or(panic);
    }

    /// Unwinds all work of a process that has ended.
    pub(super) fn end_process(&self, process: &Arc<SendingProcess>) {
        process.has_ended.store(true, Ordering::Relaxed);
        let left = || -> Vec<u64> {
            let state = self.state();
            let mine = state.works.iter().filter(|(_, work)| Arc::ptr_eq(&work.process, process));
            // Work that runs now unwinds at its next yield point, when its own step continues.
            mine.filter(|_| !state.is_running).map(|(number, _)| *number).collect()
        };
        let mut works = left();
        self.state().counts.cut_short += works.len() as u64;
        while !works.is_empty() {
            works.iter().for_each(|number| self.step(*number));
            let still = left();
            if still.len() == works.len() && !self.count_failed_lock() {
                // The threads stay; the run has failed.
                return self.report("work of an ended process waits for a lock");
            }
            works = still;
        }
    }

    /// Returns the simulated time until the next step of a blocking job; `None` if the work has
    /// ended.
    pub(super) fn time_until_next_step(&self, number: u64) -> Option<Duration> {
        self.state().works.get(&number).map(|work| work.wait)
    }
}

/// The hooks that run at each use of a lock on the simulation's thread.
struct MainThreadHooks(Weak<Shared>);

impl ThreadTurns for MainThreadHooks {
    fn may_switch(&self) {
        let Some(shared) = self.0.upgrade() else { return };
        let switches = {
            let mut state = shared.state();
            state.vain_tries = 0;
            !state.works.is_empty() && state.random.u8(0..OWN_SWITCHES_ONE_IN) == 0
        };
        if switches {
            shared.step_any();
        }
    }

    fn yield_while_locked(&self) -> bool {
        let Some(shared) = self.0.upgrade() else { return false };
        assert!(shared.count_failed_lock(), "a deadlock: nobody can free a lock");
        assert!(shared.step_any(), "a deadlock: the simulation waits for a lock that it has");
        true
    }
}

/// The hooks that run at each use of a lock in a blocking job.
struct JobHooks {
    shared: Weak<Shared>,
    number: u64,
    coroutine: Coroutine,
    process: Arc<SendingProcess>,
    /// The number of failed attempts to take the lock that the work waits for.
    vain_tries: AtomicU32,
}

impl JobHooks {
    /// Ends the step; the next step follows after the simulated time `time`.
    fn wait(&self, time: Duration) {
        if let Some(shared) = self.shared.upgrade()
            && let Some(work) = shared.state().works.get_mut(&self.number)
        {
            work.wait = time;
        }
        self.coroutine.pause();
        self.unwind_if_ended();
    }

    fn unwind_if_ended(&self) {
        if self.process.has_ended.load(Ordering::Relaxed) && !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(ProcessEnded));
        }
    }
}

impl ThreadTurns for JobHooks {
    fn may_switch(&self) {
        self.unwind_if_ended();
        self.vain_tries.store(0, Ordering::Relaxed);
        let Some(shared) = self.shared.upgrade() else { return };
        let time = {
            let mut state = shared.state();
            state.vain_tries = 0;
            let State { random, works, .. } = &mut *state;
            works.get_mut(&self.number).and_then(|work| work.pace.pause(random))
        };
        if let Some(time) = time {
            self.wait(time);
        }
    }

    fn yield_while_locked(&self) -> bool {
        if let Some(shared) = self.shared.upgrade() {
            // The simulation's thread is blocked only if it waits for the lock as well.
            shared.count_failed_lock();
            if self.vain_tries.fetch_add(1, Ordering::Relaxed) == WORK_VAIN_TRIES_MAX {
                shared.report("a deadlock: blocking work waits for a lock that nobody frees");
            }
        }
        self.wait(RETRY);
        true
    }

    fn pause(&self, time: Duration) {
        self.unwind_if_ended();
        self.wait(time);
    }
}

#[cfg(test)]
#[path = "interleaving_tests.rs"]
mod tests;
