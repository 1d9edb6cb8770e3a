//! The product as processes that are killed, stopped, started again and given other directories.
//!
//! One program for many files: they wait more than they work, so that two run side by side, and what all of them link is linked
//! once. `cargo test -p tests --test processes kill::` runs one file.

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
