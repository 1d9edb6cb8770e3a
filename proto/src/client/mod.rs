//! A service's clients for the other services: its data directory ([`DataDir`]), membership of the
//! cluster ([`Membership`]), the catalog ([`CatalogFollower`]), and the projectors of a bucket as
//! one source ([`source`]).
//!
//! Membership and the catalog are loops that retry forever. While no coordinator answers, a role
//! continues with its last known state.

mod catalog_follower;
mod data_dir;
mod identity;
mod membership;
mod retry;
pub mod source;

pub use catalog_follower::{CatalogFollower, CatalogSink};
pub use data_dir::DataDir;
pub use identity::{NodeIdentity, of_another_cluster};
pub use membership::{ForgottenPolicy, Membership, MembershipConfig};
pub use retry::Retry;
