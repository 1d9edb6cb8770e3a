//! The memory of a session between statements: its settings, the epochs that it has read, its
//! transaction, and the objects that the names in its prepared statements mean.

mod consistency;
pub mod floors;
pub mod known_settings;
pub mod resolved_names;
mod set;
pub mod settings;
pub mod state;
pub mod transact;
pub mod transaction;
pub mod values;
