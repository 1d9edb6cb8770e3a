//! `COPY … FROM STDIN`: lines are cut from the client's data, checked and written.

mod from_stdin;
pub mod lines;
mod target;
