//! The commits of several parts of a bucket ([`proto::model::open_commit`]), as its readers and
//! SYNC see them.
//!
//! [`open`] decides which commits are open, whatever their kind; [`parts`] determines the states of
//! the parts of a producer's commit. [`prepared`] has the transactions that are not decided,
//! [`arriving`] the commits that move with a vbucket, and [`awaited`] the parts that other owners
//! wait for.

mod arriving;
mod awaited;
pub mod open;
mod parts;
pub mod prepared;
