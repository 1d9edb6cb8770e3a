//! Where documents and change logs are kept: the promise, and the stores that give it.

pub mod document_store;
pub mod fjall;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
mod rules;

#[cfg(test)]
mod purge_tests;
#[cfg(test)]
mod store_tests;
