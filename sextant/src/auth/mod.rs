//! Identity: the users that this process knows, and the proofs by which clients authenticate.

pub mod follower;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
pub mod link;
pub mod login_policy;
pub mod newest_users;
pub mod scram;
pub mod throttle;
pub mod tokens;
pub mod users_file;
pub mod verifier;
