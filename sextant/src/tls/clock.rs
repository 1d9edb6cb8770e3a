//! The clock of [`Env`] as the time source of the TLS library, for the validity of certificates.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proto::env::{Clock, Env};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// The clock of an environment.
pub struct EnvClock(Arc<dyn Clock>);

impl EnvClock {
    /// Returns the clock of an environment.
    pub fn of(env: &Env) -> Arc<Self> {
        Arc::new(Self(Arc::clone(&env.clock)))
    }
}

impl fmt::Debug for EnvClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnvClock")
    }
}

impl TimeProvider for EnvClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(now(&*self.0))
    }
}

/// Returns the present time of a clock.
pub fn now(clock: &dyn Clock) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_millis(clock.unix_ms()))
}
