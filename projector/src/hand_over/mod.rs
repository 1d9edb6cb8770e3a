//! The two ends of a vbucket's hand-over ([`proto::model::homes`] has its steps), and what is left behind.
//!
//! The target pulls: pieces of the log until little is missing, then the last piece, with which the home releases the
//! vbucket. When all is durable here it asks the coordinator to be the home. Every step may be repeated, by this
//! process or by the one after it: what is here already says where to go on.
//!
//! Where the home has purged the beginning of the log, the target takes over the purge point, the documents, and the
//! log behind the point ([`crate::source`] says what keeps a part of that from being taken for the whole). A process
//! that ends before the documents are complete, and a loss or a purge that overtakes them, has the next one
//! begin anew.

mod copying;
mod home;
mod ownership;
mod remove;
mod removing;
mod target;

pub use home::give;
pub use remove::remove_gone;
pub use target::take_all;
