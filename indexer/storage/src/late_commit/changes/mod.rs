//! The changes of one transaction: their segments, the transaction's part in each index, in memory and in spilled pieces,
//! and the view that shows them over a snapshot.

pub mod own_view;
pub mod part;
mod piece;
pub mod segments;
pub mod usage;
