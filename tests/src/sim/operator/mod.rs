//! The operators' actions beside the client's statements: they move slices, vbuckets and buckets, remove nodes, and build indexes
//! anew. A fault can strike at a stage of it (`stages`).

pub mod beside;
pub mod bucket_copies;
pub mod generations;
pub mod hand_overs;
pub mod moves;
pub mod removals;
pub mod stages;
