//! The status of the cluster: one value, from which all outputs for users are derived.
//!
//! ```text
//!  catalog (of this process) ─┐                        ┌─▶ SHOW NODES, SLICES, …      render::show
//!  coordinator (its leader) ──┼─▶ ClusterStatus ───────┼─▶ /metrics                   render::metrics
//!  this process ──────────────┘   and ProcessStatus    ├─▶ gRPC ListBuckets, …        render::grpc
//!                                                      └─▶ /status: the value as JSON
//! ```
//!
//! [`ClusterStatus`] contains the words and units that users see. Each output is a pure function
//! of this value: it selects and formats fields and makes no calls. A field has the same name in
//! JSON and as a column of SHOW, and a test compares all outputs for one value.

mod cluster_status;
mod copies;
mod gather;
mod holds;
mod moves;
mod process_status;
pub(crate) mod render;
mod rollbacks;
mod slices;
#[cfg(test)]
mod tests;
mod versions;

pub use cluster_status::{
    BucketStatus, ClusterStatus, CoordinatorAnswer, CopyStatus, HoldStatus, IndexStatus,
    MoveStatus, NodeBucketStatus, NodeStatus, ProjectorShare, RollbackStatus, SliceStatus,
    VersionStatus,
};
pub use gather::{catalog_status, cluster_status};
pub use process_status::{ProcessStatus, Status, WorkStatus};
