//! Catches panics, together with the line of source at which each one began.
//!
//! A caught panic has only its message; its source line is known only to the panic hook.
//! [`remember_panic_places`] sets a hook that stores the line in a thread-local variable, from
//! which [`Panic`] reads it. A panic that is passed to another thread keeps its line.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use futures::FutureExt;

thread_local! {
    /// The source line of this thread's last panic that was not caught yet.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Sets a panic hook that stores the source line of each panic, and prints the panic as before. A
/// process calls this once, at its start.
pub fn remember_panic_places() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PLACE.set(info.location().map(ToString::to_string));
        print(info);
    }));
}

/// A caught panic, with its message and its source line.
pub struct Panic {
    payload: Box<dyn Any + Send>,
    place: Option<String>,
}

impl Panic {
    /// Runs `work` and catches its panic.
    pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(work)).map_err(Self::from_payload)
    }

    /// Runs a future and catches its panic.
    pub async fn catch_async<T>(future: impl Future<Output = T>) -> Result<T, Self> {
        AssertUnwindSafe(future).catch_unwind().await.map_err(Self::from_payload)
    }

    fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        Self { payload, place: PLACE.take() }
    }

    /// Resumes the panic in this thread, without printing it again.
    pub fn resume(self) -> ! {
        PLACE.set(self.place);
        resume_unwind(self.payload)
    }

    /// Returns true if the panic's payload is of this type.
    #[cfg(any(test, feature = "testing"))]
    pub(in crate::env) fn is<T: 'static>(&self) -> bool {
        self.payload.is::<T>()
    }

    fn message(&self) -> &str {
        let text = self.payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| self.payload.downcast_ref::<String>().map(String::as_str));
        text.unwrap_or("without a message")
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(out, "panicked at {place}: {}", self.message()),
            None => write!(out, "panicked: {}", self.message()),
        }
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
