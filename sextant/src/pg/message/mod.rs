//! The messages of the protocol: their bytes on the socket, and the values, types and errors in
//! them.

pub mod conn;
pub mod error;
pub mod frame;
pub mod types;
