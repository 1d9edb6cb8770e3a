//! The projector's service interface.

#[path = "service/commit_markers.rs"]
mod commit_markers;
mod common;
#[path = "service/copied_commits.rs"]
mod copied_commits;
#[path = "service/copies.rs"]
mod copies;
#[path = "service/damaged.rs"]
mod damaged;
#[path = "service/hand_over.rs"]
mod hand_over;
#[path = "service/joint_commits.rs"]
mod joint_commits;
#[path = "service/joint_ends.rs"]
mod joint_ends;
#[path = "service/large_commits.rs"]
mod large_commits;
#[path = "service/openings.rs"]
mod openings;
#[path = "service/other_ids.rs"]
mod other_ids;
#[path = "service/purged_hand_over.rs"]
mod purged_hand_over;
#[path = "service/pushed_holds.rs"]
mod pushed_holds;
#[path = "service/pushed_transactions.rs"]
mod pushed_transactions;
#[path = "service/pushes.rs"]
mod pushes;
#[path = "service/streams.rs"]
mod streams;
#[path = "service/timestamps.rs"]
mod timestamps;
#[path = "service/transaction_conflicts.rs"]
mod transaction_conflicts;
#[path = "service/transaction_outcomes.rs"]
mod transaction_outcomes;
#[path = "service/transaction_streams.rs"]
mod transaction_streams;
#[path = "service/transactions.rs"]
mod transactions;
#[path = "service/versions.rs"]
mod versions;
#[path = "service/versions_compared.rs"]
mod versions_compared;
#[path = "service/versions_lost.rs"]
mod versions_lost;
#[path = "service/writes.rs"]
mod writes;
