//! The description and the execution of statements, and the tables of SHOW.

pub mod describe;
pub mod execute;
mod show;
mod show_users;
mod write;
