//! PostgreSQL's wire protocol, version 3.0.
//!
//! `pgwire` provides the messages. The session loop is our own: it streams results from the cluster to the socket
//! without buffering them whole, it can cancel a running statement, and it keeps client and server in step after an
//! error. Each session is one task:
//!
//! ```text
//! frame         bytes ⇄ messages: length and shape are checked before a message is decoded
//! conn          the socket: reads messages, buffers answers
//! session       the state of a session, and the start of a statement
//! session_loop  reads and answers message after message; after an error it skips to Sync
//! simple        query texts
//! extended      Parse, Bind, Describe, Execute, Close, with the portals of `portal`
//! state         the part of a session that statements read and change
//! describe      describes a prepared statement
//! execute       runs a statement: the outcome is rows, a command tag, or a COPY
//! write         INSERT and DELETE
//! stream        rows in pieces, at the socket's pace
//! row_writer    rows into the buffer of answers, printed by `crate::rows`
//! copy_in       COPY … FROM STDIN; copy_lines cuts and checks its lines, copy_target writes them
//! finish        command tags, COPY … TO STDOUT, the description of rows
//! ```
//!
//! A cancel request or a time-out *interrupts* a statement (`interrupt`): its future is dropped at any await. A half
//! written message is still completed, because the buffer of answers knows how far the socket is.

mod aggregate_row;
mod conn;
mod consistency;
mod copy_in;
mod copy_lines;
mod copy_target;
mod describe;
mod documents;
mod error;
mod execute;
mod extended;
mod finish;
mod floors;
mod frame;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod interrupt;
mod kept;
mod known_settings;
mod login;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(not(test), allow(dead_code, reason = "parts of it serve the tests of this crate only"))]
mod memory;
mod portal;
mod row_writer;
mod server;
mod session;
mod session_loop;
mod session_places;
mod settings;
mod show;
mod show_users;
mod simple;
mod starting;
mod startup;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod transact;
mod transaction;
mod types;
mod write;

pub use server::{PgConfig, PgServer};
