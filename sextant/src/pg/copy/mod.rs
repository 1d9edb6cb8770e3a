//! `COPY … FROM STDIN`: the client's data is cut into lines, which are checked and written.

mod from_stdin;
pub mod lines;
mod target;
