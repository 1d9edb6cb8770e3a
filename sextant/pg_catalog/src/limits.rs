//! The limits of a statement: what one client asks never stops the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// The number of steps between two checks of the interruption.
const STEPS_PER_CHECK: u64 = 1024;

/// The limits of one statement, and what it has used.
pub struct Limits {
    steps_max: u64,
    bytes_max: usize,
    steps: u64,
    bytes: usize,
    cancelled: Arc<AtomicBool>,
}

impl Limits {
    /// Creates limits. A step is one evaluated operator or one visited row; the bytes are those
    /// of rows that the statement stores while it runs. The flag ends the statement when it is set.
    pub fn new(steps_max: u64, bytes_max: usize, cancelled: Arc<AtomicBool>) -> Self {
        Self { steps_max, bytes_max, steps: 0, bytes: 0, cancelled }
    }

    /// Counts steps. An error if the statement takes more than its limit (54001) or is cancelled (57014).
    pub fn step(&mut self, steps: u64) -> Result<()> {
        let before = self.steps / STEPS_PER_CHECK;
        self.steps += steps;
        if self.steps / STEPS_PER_CHECK == before {
            return Ok(());
        }
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::new("57014", "canceling statement due to user request"));
        }
        if self.steps > self.steps_max {
            let what =
                format!("a statement of the catalogue takes at most {} steps", self.steps_max);
            return Err(
                Error::new("54001", what).with_hint("name one object, or join fewer relations")
            );
        }
        Ok(())
    }

    /// Counts stored bytes. An error beyond the limit (53200).
    pub fn store(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        let what = format!("a statement of the catalogue stores at most {} bytes", self.bytes_max);
        Err(Error::new("53200", what).with_hint("read fewer rows, or sort and group less"))
    }

    /// Returns the bytes that are stored at present.
    pub fn stored_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns bytes that are not stored any more.
    pub fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
