//! Flow control: memory budgets, admission of scans, and channels that are bounded in bytes.

pub mod admission;
pub mod budget;
pub mod byte_channel;

pub use admission::{Admission, AdmissionLimits, AdmissionStatus, Permit};
pub use budget::{Budget, Reservation};
pub use byte_channel::{ByteReceiver, ByteSender, ReceiverGone, byte_channel};
