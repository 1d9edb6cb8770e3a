//! The stores of documents and change logs: the contract and its implementations.

pub mod document_store;
pub mod fjall;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
mod rules;

#[cfg(test)]
mod differential_tests;
#[cfg(test)]
mod purge_tests;
#[cfg(test)]
mod store_tests;
