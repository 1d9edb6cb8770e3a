//! The rows of a large commit: written into fragments, often before the epoch of the commit is
//! known, and corrected when the epoch is known.

mod changed_documents;
pub mod correction;
pub mod prepared;
mod states;
pub mod writer;
