//! Transactions over several buckets, for the SQL and the gRPC port: the epochs that they read,
//! their changes, and their commit.

pub mod buckets;
pub mod commit;
