//! Tests the product as processes that are killed, stopped, restarted and given other directories.
//!
//! One program contains many files: the tests wait more than they work, so two can run in parallel,
//! and the common code is linked once. `cargo test -p tests --test processes kill::` runs one file.

mod audit;
mod certificates;
mod chaos;
mod copies;
mod generations;
mod golden_directory;
mod hand_over;
mod held_epochs;
mod identity;
mod kill;
mod large_commits;
mod logins;
mod lost;
mod members;
mod moves;
mod older_copy;
mod pushed_transactions;
mod restarts;
mod rollback;
mod router_data;
mod starting;
mod stopping;
mod transaction_histories;
mod versions;
