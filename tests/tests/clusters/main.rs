//! Tests of clients of whole clusters, which run in the process of the test.
//!
//! One program contains many files, so that it is linked once.
//! `cargo test -p tests --test clusters psql::` runs one file.

mod batches;
mod builds;
mod commit_outcomes;
mod docs;
mod doors;
mod drivers;
mod failover;
mod generations;
mod grpc_transactions;
mod ingest;
mod joint_commits;
mod large_commits;
mod model;
mod moments;
mod overload;
mod pages;
mod psql;
mod pushed_transactions;
mod ranges;
mod sessions;
mod shown;
mod transaction_histories;
mod transactions;
mod users;
