//! A bucket as its readers see it: the end of its history, its newest mutations, its stability
//! timestamps, and whether it is served.

mod availability;
mod awaited_parts;
mod backlog;
pub mod bucket;
pub mod head;
pub mod large_commits;
mod open_state;
mod place;
mod prepared_bytes;
mod published;
mod serving;
mod snapshot;
mod timestamps;
