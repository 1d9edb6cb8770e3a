//! The simple and the extended protocol of PostgreSQL, and the loop that reads and answers the
//! messages of a session.

mod extended;
mod finish;
mod input;
mod portal;
pub mod session;
mod session_loop;
mod simple;
