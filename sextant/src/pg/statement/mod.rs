//! Statements: the types of their results, their execution, and the tables of SHOW.

pub mod describe;
pub mod execute;
mod show;
mod show_users;
mod write;
