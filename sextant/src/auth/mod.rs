//! Identity: the users that this process knows, and the proofs by which a client shows that it is one of them.

pub mod doors;
pub mod follower;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
pub mod kept;
pub mod known;
pub mod link;
pub mod scram;
pub mod throttle;
pub mod tokens;
pub mod verifier;
