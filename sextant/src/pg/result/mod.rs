//! The rows of a result, which are read from the cluster in batches and written into the buffer of
//! answers at the socket's rate.

mod aggregate_row;
mod documents;
pub mod row_writer;
pub mod stream;
