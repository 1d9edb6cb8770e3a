//! A member of the coordinator: the log, the leader's loop, and the calls that come in.
//!
//! What any member answers from its own copy: watches, status, epochs that are published. All else is
//! the leader's: a member that does not lead forwards. The chain of forwards ends, because each member
//! forwards to the leader of its own term, and a member that led a term and forwards in turn is in a
//! later one.
//!
//! Tasks: the log's (its end is the member's end), one for each other member ([`peers`]), the
//! three of the leader ([`crate::leader::driver`]), and one that says that this member is alive. They end when the
//! [`Coordinator`] is dropped; what was acknowledged is safe.

mod alive;
mod calls;
mod coordinator;
mod covering;
mod peers;
mod reports;
mod watch;

pub use coordinator::Coordinator;
