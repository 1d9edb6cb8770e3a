//! The commits of a bucket that no epoch may split, as its readers and SYNC see them: those over several buckets, and those
//! of producers over several owners.

pub mod joint;
mod producer_commits;
mod pushed_awaited;
