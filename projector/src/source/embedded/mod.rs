//! Embedded buckets: the projector numbers the mutations itself.

pub mod branches;
pub mod check;
pub mod numbering;
