//! Embedded buckets: the projector numbers their mutations itself.

pub mod commit;
pub mod holds;
pub mod joint;
pub mod numbering;
mod source;

pub use commit::look_up;
pub use source::Embedded;
