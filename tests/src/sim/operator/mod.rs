//! The operators' actions during the client's statements: operators move slices, vbuckets and
//! buckets, remove nodes, and rebuild indexes. Faults can occur at a stage of an action (`stages`).

pub mod beside;
pub mod bucket_copies;
pub mod generations;
pub mod hand_overs;
pub mod moves;
pub mod removals;
pub mod stages;
