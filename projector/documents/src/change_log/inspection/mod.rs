//! Inspection of a log's files: their contents, their damage, and whether the log has all data that
//! its checkpoint needs.

pub mod describe;
mod expected;
pub mod survey;
