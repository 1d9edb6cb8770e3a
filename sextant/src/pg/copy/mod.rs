//! `COPY … FROM STDIN`: modules that cut the client's data into lines, check the lines, and write
//! their documents.

mod from_stdin;
pub mod lines;
mod target;
