//! Recovery: opens the files of a node.

pub(crate) mod load;
pub(crate) mod open;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod replay_tests;
