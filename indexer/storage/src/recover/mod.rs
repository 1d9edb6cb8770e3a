//! Recovery: opening of a node's files after a start (`open`), and loading of its indexes
//! (`load`).

pub(crate) mod load;
pub(crate) mod open;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod replay_tests;
