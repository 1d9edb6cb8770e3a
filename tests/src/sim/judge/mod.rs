//! The data by which each answer is judged: the histories of clients and sources, the entries of an
//! index at an epoch, the cuts of epochs, and the order of DDL.

pub(super) mod copied;
pub(super) mod ddl;
pub(super) mod marks;
pub mod oracle;
pub(super) mod statements;
pub mod truth;
