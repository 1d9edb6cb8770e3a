//! Statements: what they mean to a session, how they run, and what SHOW answers.

pub mod describe;
pub mod execute;
mod show;
mod show_users;
mod write;
