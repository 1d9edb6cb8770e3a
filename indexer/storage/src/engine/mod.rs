//! The facade of the storage engine: opening, epochs, snapshots (`storage_engine`), moves of
//! slices between nodes (`moves`), rebuilds and comparisons (`builds`).

pub(crate) mod builds;
pub(crate) mod moves;
pub(crate) mod storage_engine;

#[cfg(test)]
mod column_group_tests;
#[cfg(test)]
mod compression_tests;
#[cfg(test)]
mod concurrency_tests;
#[cfg(test)]
mod generation_tests;
#[cfg(test)]
mod leak_tests;
