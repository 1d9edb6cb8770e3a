//! PostgreSQL's wire protocol, version 3.0.
//!
//! `pgwire` gives the messages; the session loop is our own, because results are streamed from the
//! cluster to the socket with nothing buffered whole in between, a running statement can be cancelled,
//! and errors keep both sides in step. One session is one task:
//!
//! ```text
//! frame    bytes ⇄ messages: length and shape are checked before anything is decoded
//! conn     the socket: one message in, a buffer of answers out, flushed when full or when waiting
//! session  the loop: one message after the other, transaction status, errors, skipping to Sync
//! extended Parse, Bind, Describe, Execute, Close
//! execute  a statement becomes rows, a command tag, or a COPY
//! stream   rows, in pieces, at the socket's pace
//! parking  what is read in pieces lets go of its place when nobody reads on
//! rows     rows of a scan straight into the buffer; `value` for single values
//! copy_in  COPY … FROM STDIN
//! ```
//!
//! A statement is *interrupted* by a cancel request or its time-out (`interrupt`): its future is
//! dropped wherever it waits, and what is half written to the socket is finished first, since the
//! buffer knows how far it came.

mod conn;
mod copy_in;
mod error;
mod execute;
mod extended;
mod frame;
mod interrupt;
mod parking;
mod rows;
mod server;
mod session;
mod settings;
mod show;
mod show_moves;
mod show_rollbacks;
mod startup;
mod stream;
#[cfg(test)]
mod tests;
mod types;
mod value;

#[cfg(test)]
pub(crate) use parking::SUSPENDED_RUNS;
pub(crate) use parking::{Park, Suspended};
pub use rows::EntryPrinter;
pub use server::{Config, Server};
