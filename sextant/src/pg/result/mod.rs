//! The rows of a result. They are read from the cluster in batches and written into the buffer of
//! answers at the rate at which the socket accepts them.

mod aggregate_row;
mod documents;
pub mod row_writer;
pub mod stream;
