//! The limits of open transactions: their number, and their bytes.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::ids::TransactionId;
use proto::{Error, ErrorCode, Result};

use super::room::TransactionBudget;

/// The limits of a bucket's open transactions: their number, and their bytes.
#[derive(Clone)]
pub struct Limits {
    /// Maximum bytes of the changes of one transaction.
    pub bytes_max: usize,
    /// Maximum number of open transactions of one bucket.
    pub open_max: usize,
    /// The memory budget of all open transactions of the projector.
    pub room: Arc<TransactionBudget>,
}

impl Limits {
    /// Returns the limits for a transaction that epochs may wait for. Such transactions have no
    /// limit of their number, since their bytes are bounded.
    pub fn for_awaited(&self) -> Self {
        Self { open_max: usize::MAX, ..self.clone() }
    }

    /// Returns an error if a transaction with `bytes` bytes of changes exceeds its limit.
    pub fn check_bytes(&self, id: TransactionId, bytes: usize) -> Result<()> {
        if bytes <= self.bytes_max {
            return Ok(());
        }
        let what = format!(
            "transaction {id} would have {} KiB of changes, the limit is {} KiB; nothing was written",
            bytes.div_ceil(1 << 10),
            self.bytes_max >> 10
        );
        Err(Error::new(ErrorCode::OverLimit, what).with_hint("commit smaller transactions"))
    }

    /// Returns an error if a bucket with `open` open transactions may not begin another one.
    pub fn check_open(&self, bucket: &BucketInfo, open: usize) -> Result<()> {
        if open < self.open_max {
            return Ok(());
        }
        let (name, most) = (&bucket.name, self.open_max);
        let what = format!("bucket {name} has {most} open transactions, which is the limit");
        Err(Error::new(ErrorCode::TooBusy, what)
            .with_hint("try again when other transactions have ended"))
    }
}
