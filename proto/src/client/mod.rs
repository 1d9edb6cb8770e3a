//! What every role does with the coordinator: stays a member of the cluster ([`Membership`]) and follows the catalog
//! ([`CatalogFollower`]).
//!
//! Both are loops that retry for ever. While no coordinator answers, a role works on with what it knows.

mod catalog_follower;
mod membership;
mod retry;

pub use catalog_follower::{CatalogFollower, CatalogSink};
pub use membership::{Membership, MembershipConfig, WhenForgotten};
pub use retry::Retry;
