//! The start of a connection: its first packets, the log-in, and the places that connections and sessions take.

pub mod login;
pub mod session_places;
pub mod starting;
pub mod startup;
