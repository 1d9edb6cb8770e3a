//! The messages of the SQL protocol: their bytes on the socket, and the values, types and errors
//! that they contain.

pub mod conn;
pub mod error;
pub mod frame;
pub mod types;
