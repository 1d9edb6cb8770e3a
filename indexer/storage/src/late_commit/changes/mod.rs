//! The changes of one transaction: their division into segments, the changes in each index (a
//! *part*), parts of them that were written to disk (*spilled pieces*), and the snapshot that
//! shows a transaction its changes (the *own view*).

pub mod own_view;
pub mod part;
mod piece;
pub mod segments;
pub mod usage;
