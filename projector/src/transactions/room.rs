//! The memory budget of all open transactions of a projector.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proto::{Error, ErrorCode, Result};

/// The memory budget of all open transactions of a projector, in bytes of their changes. The
/// budget counts single bytes, since most transactions are smaller than a unit of
/// [`proto::flow::Budget`].
#[derive(Debug)]
pub struct TransactionBudget {
    used: AtomicUsize,
    bytes_max: usize,
}

/// The memory that one transaction has reserved in the budget; released when this value is
/// dropped.
#[derive(Debug)]
pub struct TransactionReservation {
    room: Arc<TransactionBudget>,
    bytes: usize,
}

impl TransactionBudget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), bytes_max })
    }

    /// Returns an empty reservation for a new transaction.
    pub fn empty_reservation(self: &Arc<Self>) -> TransactionReservation {
        TransactionReservation { room: Arc::clone(self), bytes: 0 }
    }

    /// Returns the number of reserved bytes.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl TransactionReservation {
    /// Returns the bytes of this reservation.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves `bytes` more bytes. The error is `TooBusy` if the budget has too few left.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.grow_beyond_budget(bytes, 0)
    }

    /// Reserves `bytes` more bytes. The budget may be exceeded by up to `reserve` bytes; the
    /// error is `TooBusy` above that.
    pub fn grow_beyond_budget(&mut self, bytes: usize, reserve: usize) -> Result<()> {
        let TransactionBudget { used, bytes_max } = &*self.room;
        let most = bytes_max.saturating_add(reserve);
        // A single counter: no other memory is ordered by it.
        let grown = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
            let what = format!(
                "the open transactions of this projector have {} KiB of changes together, the limit is {} KiB; nothing was written",
                used.load(Ordering::Relaxed) >> 10,
                bytes_max >> 10
            );
            return Err(Error::new(ErrorCode::TooBusy, what)
                .with_hint("try again when other transactions have ended"));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Changes the reservation to `bytes` bytes that are in memory already, even if that exceeds
    /// the budget. Other transactions can then reserve no more until memory was released.
    pub fn set(&mut self, bytes: usize) {
        match bytes.checked_sub(self.bytes) {
            Some(more) => {
                self.room.used.fetch_add(more, Ordering::Relaxed);
                self.bytes = bytes;
            }
            None => self.shrink(self.bytes - bytes),
        }
    }

    /// Adds the bytes of another reservation to this one.
    pub fn add(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Releases `bytes` of the reserved bytes.
    pub fn shrink(&mut self, bytes: usize) {
        self.room.used.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes -= bytes;
    }
}

impl Drop for TransactionReservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}
