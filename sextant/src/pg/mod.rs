//! PostgreSQL's wire protocol, version 3.0.
//!
//! `pgwire` provides the messages. The session loop is not from the library. It streams results
//! from the cluster to the socket without buffering complete results, it can cancel a running
//! statement, and after an error it skips messages up to the client's next Sync. Each session is
//! one task:
//!
//! ```text
//! server     accepts connections, and runs a session for each
//! copy       COPY … FROM STDIN: lines are cut from the data, checked and written
//! protocol   the session and its loop, which skips to Sync after an error; query texts (`simple`); Parse, Bind, Describe,
//!            Execute and Close (`extended`), with the portals of `portal`; command tags and COPY … TO STDOUT (`finish`)
//! statement  runs a statement: the outcome is rows, a command tag, or a COPY; INSERT and DELETE, SHOW, descriptions
//! start      the first packets of a connection, the log-in, and the places of connections
//! result     rows in pieces, at the socket's pace, into the buffer of answers, printed by `crate::rows`
//! session    what a session keeps: settings, floors, its transaction, what names mean
//! interrupt  cancel requests, time-outs, the stop of the process
//! message    bytes ⇄ messages (`frame`: length and shape are checked before a message is decoded), the socket (`conn`),
//!            types and errors
//! ```
//!
//! A cancel request or a time-out *interrupts* a statement (`interrupt`): its future is dropped
//! at any await. If a message is only partly written then, the rest is written later, because the
//! buffer of answers counts the written bytes.

mod copy;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod interrupt;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(not(test), allow(dead_code, reason = "parts of it serve the tests of this crate only"))]
mod memory;
mod message;
mod protocol;
mod result;
mod server;
mod session;
mod start;
mod statement;
#[cfg(test)]
mod tests;

pub use server::{PgConfig, PgServer};
