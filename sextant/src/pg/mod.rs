//! PostgreSQL's wire protocol, version 3.0.
//!
//! `pgwire` gives the messages; the session loop is our own, because results are streamed from the
//! cluster to the socket with nothing buffered whole in between, a running statement can be cancelled,
//! and errors keep both sides in step. One session is one task:
//!
//! ```text
//! frame    bytes ⇄ messages: length and shape are checked before anything is decoded
//! conn     the socket: one message in, a buffer of answers out, flushed when full or when waiting
//! session  what is kept from one message to the next, and how a statement is begun; `session_loop` has
//!          the loop: one message after the other, errors, skipping to Sync
//! simple   query texts
//! extended Parse, Bind, Describe, Execute, Close, with the portals of `portal`
//! execute  a statement becomes rows, a command tag, or a COPY
//! stream   rows, in pieces, at the socket's pace
//! finish   command tags, COPY, the description of rows
//! row_writer  rows into the buffer, printed by [`crate::rows`]
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
mod finish;
mod frame;
mod interrupt;
mod portal;
mod row_writer;
mod server;
mod session;
mod session_loop;
mod settings;
mod show;
mod show_moves;
mod show_rollbacks;
mod simple;
mod startup;
mod stream;
#[cfg(test)]
mod tests;
mod types;

pub use server::{Config, Server};
