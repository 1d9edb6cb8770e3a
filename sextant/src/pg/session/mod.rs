//! What a session keeps between its statements: its settings, what it has seen, its transaction, and what the names in its
//! prepared statements mean.

mod consistency;
pub mod floors;
pub mod kept;
pub mod known_settings;
mod set;
pub mod settings;
pub mod state;
pub mod transact;
pub mod transaction;
