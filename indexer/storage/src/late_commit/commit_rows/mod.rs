//! The rows of a commit: written into fragments, often before their epoch is known, and corrected when it is.

mod changed_documents;
pub mod correction;
pub mod prepared;
mod states;
pub mod writer;
