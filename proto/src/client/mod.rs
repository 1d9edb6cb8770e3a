//! A service's clients for the other services: its data directory ([`DataDir`]), membership of
//! the cluster ([`Membership`]), the catalog ([`CatalogFollower`]), and the projectors of a
//! bucket with the interface of one ([`source`]).
//!
//! Membership and the catalog are loops that retry forever. While no coordinator answers, a node
//! continues with the last catalog that it received.

mod catalog_follower;
mod data_dir;
mod identity;
mod membership;
mod retry;
pub mod source;

pub use catalog_follower::{CatalogFollower, CatalogSink};
pub use data_dir::DataDir;
pub use identity::{NodeIdentity, other_cluster_error};
pub use membership::{ForgottenPolicy, Membership, MembershipConfig};
pub use retry::Retry;
