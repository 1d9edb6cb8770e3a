//! The stores of documents and change logs: the contract and its implementations.

pub mod fjall;

#[cfg(test)]
mod differential_tests;
#[cfg(test)]
mod purge_tests;
#[cfg(test)]
mod store_tests;
