//! Hand-overs of vbuckets between projectors ([`proto::model::assignment`] has the steps), and
//! the removal of data that is left over from them.
//!
//! The target requests ranges of the owner's log until few mutations are missing. With the last
//! range the owner releases the vbucket: it accepts no further mutations. When all mutations are
//! durable at the target, the target requests ownership from the coordinator. Every step may be
//! repeated, by this process or by the next one, because the stored data determines where to
//! continue.
//!
//! If the owner has purged the beginning of the log, the target copies the purge point, the
//! documents, and the log after the point ([`crate::source`] explains how a partial copy is
//! distinguished from a complete one). The copy starts again if the process ends before all
//! documents are copied, or if the owner meanwhile loses history or purges mutations that the
//! target still needs.

mod copying;
mod owner;
mod ownership;
pub mod pieces;
mod removal;
mod remove;
mod target;

pub use owner::answer_target;
pub use remove::remove_unneeded;
pub use target::take_over_all;
