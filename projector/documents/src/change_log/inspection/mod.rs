//! Inspects the files of a change log: lists their contents and their damage, and checks whether
//! the log has all data that its checkpoint needs.

pub mod describe;
mod expected;
pub mod survey;
