//! The rows of a result: read from the cluster in pieces, and written into the buffer of answers at the socket's pace.

mod aggregate_row;
mod documents;
pub mod row_writer;
pub mod stream;
