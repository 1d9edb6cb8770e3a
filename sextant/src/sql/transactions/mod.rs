//! Transactions over buckets, for the SQL and the gRPC port: what they read and change, and how they commit.

pub mod buckets;
pub mod commit;
