//! The readers' view of a bucket: the end of its history, its newest mutations, its timestamps, and whether it is served.

mod availability;
mod backlog;
pub mod bucket;
pub mod head;
mod joint_state;
pub mod large_commits;
mod place;
mod published;
mod pushed_state;
mod serving;
mod snapshot;
mod timestamps;
