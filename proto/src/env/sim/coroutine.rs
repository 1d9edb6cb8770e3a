//! Coroutines: blocking work on a separate thread that runs only while the caller waits.
//!
//! Caller and work take turns: one of the two threads runs, and the other one waits. So a program
//! with much blocking work still runs one thread at a time, and the order of its steps follows
//! from the calls of [`Coroutine::resume`].

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest time that a step may take on the real clock. A longer step probably waits for a
/// paused thread, for example for a lock of a library that does not take turns.
const STEP_MAX: Duration = Duration::from_secs(120);

/// The work of a coroutine, which must catch its own panics.
pub(super) type Job = Box<dyn FnOnce(&Coroutine) + Send>;

/// Idle threads, which later coroutines reuse.
#[derive(Default)]
pub(super) struct IdleThreads(Mutex<Vec<Coroutine>>);

/// Blocking work on a thread of its own, which runs in steps. Clones refer to one coroutine.
#[derive(Clone)]
pub(super) struct Coroutine(Arc<Slot>);

struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    side: Side,
    job: Option<Job>,
}

/// The thread that may run now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The caller runs; the work is paused or has not begun.
    Caller,
    /// The work runs, and the caller waits.
    Work,
    /// The caller runs; the work has ended.
    Ended,
    /// The caller runs; the thread of the work must end.
    Closed,
}

impl IdleThreads {
    /// Creates a coroutine for a job that has not begun, on an idle thread or a new one.
    pub fn coroutine(&self, job: Job) -> Coroutine {
        let idle = self.idle().pop();
        let coroutine = idle.unwrap_or_else(Coroutine::start_thread);
        let mut state = coroutine.state();
        (state.side, state.job) = (Side::Caller, Some(job));
        drop(state);
        coroutine
    }

    /// Keeps the thread of a coroutine that has ended, for a later coroutine.
    pub fn reuse_thread(&self, ended: Coroutine) {
        self.idle().push(ended);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Coroutine>> {
        // Not a yield point, because it belongs to the turns themselves.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IdleThreads {
    fn drop(&mut self) {
        for idle in self.idle().drain(..) {
            idle.set(Side::Closed);
        }
    }
}

impl Coroutine {
    #[allow(clippy::disallowed_methods, reason = "this is the seam that the lint points to")]
    fn start_thread() -> Self {
        let state = Mutex::new(State { side: Side::Caller, job: None });
        let coroutine = Self(Arc::new(Slot { state, changed: Condvar::new() }));
        let mine = coroutine.clone();
        std::thread::spawn(move || {
            while let Some(job) = mine.next_job() {
                job(&mine);
                mine.set(Side::Ended);
            }
        });
        coroutine
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, side: Side) {
        self.state().side = side;
        self.0.changed.notify_all();
    }

    /// Waits, on the work's thread, until the work may run. Returns `None` if the thread must
    /// end.
    fn wait_for_turn(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.state();
        loop {
            match state.side {
                Side::Work => return Some(state),
                Side::Closed => return None,
                Side::Caller | Side::Ended => {
                    state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn next_job(&self) -> Option<Job> {
        self.wait_for_turn()?.job.take()
    }

    /// Runs the work until it pauses or ends. Returns true if it has ended.
    ///
    /// # Panics
    /// If the work does neither within two minutes.
    pub fn resume(&self) -> bool {
        self.set(Side::Work);
        let mut state = self.state();
        while state.side == Side::Work {
            let waited = self.0.changed.wait_timeout(state, STEP_MAX);
            let (next, time) = waited.unwrap_or_else(PoisonError::into_inner);
            state = next;
            assert!(
                !time.timed_out() || state.side != Side::Work,
                "a piece of blocking work waits for something outside of the turns"
            );
        }
        state.side == Side::Ended
    }

    /// Lets the caller run, and waits until it resumes the work. Called on the work's thread.
    pub fn pause(&self) {
        self.set(Side::Caller);
        drop(self.wait_for_turn());
    }
}
