//! The state that a router keeps on its disk, so that it can serve after a restart while no
//! coordinator answers.
//!
//! A scan needs the catalog, with nodes and topologies, and the applied epochs, which the indexers
//! report on their own initiative. So a starting router lacks only the catalog. The catalog is
//! stored in one file ([`file`]). The file also has the last moment (one point in time for all
//! buckets), which a `READ ONLY` transaction needs, and for each index the newest epoch that scans
//! could read. A task writes the file soon after each catalog of a coordinator, and periodically
//! to update the time of the last answer ([`keeper`]); no scan waits for these writes. The file is
//! a cache: any error in it is logged, and the router then waits for a coordinator as it would
//! without a file.
//!
//! # Why a scan with a stored catalog is exact or fails
//!
//! A router that has read its file is in the same state as a router that has run since the file was
//! written without an answer of a coordinator. The indexers have all later changes, and a router
//! that lags is an ordinary case:
//!
//! - *A slice has moved.* Its old node answers that it no longer has the slice. A node that
//!   reports the slice is queried instead. If the stored catalog lacks that node, the scan fails.
//! - *An index or a bucket was dropped.* Its nodes report no slices of it any more, so no epoch is
//!   found. The number of an index, with its generation, is never used for another one.
//! - *A node has another address, or another process has the old one.* A call names the number of
//!   the node and the cluster, and a process with another number or cluster refuses it.
//! - *A rollback.* Indexers that have received it refuse dead epochs, and report none below the
//!   first epoch after the rollback. Until that epoch is published they may report the rollback
//!   point. The rollback point lacks surviving mutations, so the stored epochs are *floors*, below
//!   which no scan reads. Later epochs have greater numbers than all dead ones, so a scan with a
//!   dead floor reads the first later epoch. If no indexer has received the rollback, all other
//!   routers read the same epochs too.
//!
//! Leases, topologies that tokens name, and the last epochs of sessions are lost with the process;
//! they were never guaranteed beyond it.
//!
//! # Why the state never moves back
//!
//! The file is read once, at the start. The first catalog of a coordinator replaces it for good,
//! and removes the floors. A member of the coordinator that lags may send an older catalog. It is
//! refused, unless the leader itself has an older one for a while: then the coordinators were
//! restored from an older copy, and their catalog is accepted. The coordinators do not take a
//! stored catalog as evidence of such a restoration, because a cache may be arbitrarily old: the
//! heartbeats leave its number out.
//!
//! A catalog of another cluster never replaces the stored one within a process: the router removes
//! the file and ends, as does a router that has served the old cluster
//! (`sextant/src/roles/other_cluster.rs`). The directory's IDENTITY names the cluster of the file,
//! so that a file from elsewhere is not served.

pub(crate) mod file;
mod keeper;
mod take_over;

pub use keeper::RouterData;
pub(crate) use keeper::keep_file_current;
pub(crate) use take_over::CatalogTakeOver;
