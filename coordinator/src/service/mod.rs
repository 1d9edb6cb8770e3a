//! A member of the coordinator: its log, its tasks, and its incoming calls.
//!
//! Any member answers watches, status, and waits for published epochs from its own copy of the state. All other calls
//! belong to the leader, and a member that does not lead forwards them. The chain of forwards ends: each member
//! forwards to the leader of its own term, and a member that led a term and now forwards is in a later term.
//!
//! Tasks: one for the log (its end is the member's end), one for each other member ([`peers`]), one that watches the members ([`members`]), the three of the
//! leader ([`crate::leader::driver`]), one that fixes moments, and one that sends the member's heartbeats. Dropping the [`Coordinator`] ends
//! them; everything acknowledged is safe.

mod alive;
mod calls;
mod coordinator;
mod covering;
mod data_dir;
mod members;
mod moments;
mod peers;
mod reports;
mod skip;
mod watch;

pub use coordinator::Coordinator;
