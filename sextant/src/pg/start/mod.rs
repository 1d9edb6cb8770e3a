//! The start of a connection: its first packets, the log-in, and the limits of the number of
//! connections and sessions.

pub mod login;
pub mod session_places;
pub mod starting;
pub mod startup;
