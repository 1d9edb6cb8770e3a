//! The commits of a bucket that consist of several parts ([`proto::model::open_commit`]): in
//! several buckets, or in several vbuckets of a producer's bucket. Until an epoch has all parts,
//! such a commit is open.
//!
//! [`open`] determines which commits are open, and what SYNC reports about them; [`parts`]
//! determines the states of the parts of a producer's commit. [`prepared`] has the transactions
//! whose outcome is not known, [`arriving`] the commits that move with a vbucket to another
//! projector, and [`awaited`] the parts that other owners wait for.

mod arriving;
mod awaited;
pub mod open;
mod parts;
pub mod prepared;
