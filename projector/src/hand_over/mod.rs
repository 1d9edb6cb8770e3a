//! Hand-overs of vbuckets between projectors ([`proto::model::assignment`] has the steps), and the
//! removal of leftover data.
//!
//! The target pulls pieces of the log until few mutations are missing. With the last piece the
//! owner releases the vbucket. When all mutations are durable at the target, the target requests
//! ownership from the coordinator. Every step may be repeated, by this process or by the next one,
//! because the stored data determines where to continue.
//!
//! If the owner has purged the beginning of the log, the target copies the purge point, the
//! documents, and the log after the point ([`crate::source`] explains why a partial copy is never
//! taken for a complete one). If the process ends before the documents are complete, or a loss or a
//! purge overtakes them, the copy starts again.

mod copying;
mod owner;
mod ownership;
pub mod pieces;
mod removal;
mod remove;
mod target;

pub use owner::serve;
pub use remove::remove_gone;
pub use target::take_over_all;
