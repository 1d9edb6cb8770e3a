//! The knowledge that a router keeps on its disk, so that it serves after a restart while no coordinator answers.
//!
//! A scan needs the catalog, with nodes and topologies, and the applied epochs, which the indexers report by themselves. So the catalog
//! is all that a router lacks at its start. It is kept in one file ([`file`]), with the last moment, by which a `READ ONLY`
//! transaction names its own, and with the newest epoch of each index that scans could read. A task writes the file soon after each
//! catalog of a coordinator, and now and then for the time of the last answer ([`keeper`]); no scan waits for that. The file is a cache:
//! whatever is wrong with it is logged, and the router then waits for a coordinator as without one.
//!
//! # Why a scan under a kept catalog is exact or fails
//!
//! A router that has read its file is in the state of one that has run on since the file was written and has heard no
//! coordinator. All that may have changed meanwhile is known to the indexers, and a router that lags behind them is an ordinary case:
//!
//! - *A slice has moved.* Its old node answers that the slice is gone. A node that reports the slice is asked instead. If the kept
//!   catalog lacks that node, the scan fails.
//! - *An index or a bucket was dropped.* Its nodes report no slices of it any more, so no epoch is found. Numbers of indexes,
//!   generations included, mean one index for ever.
//! - *A node has another address, or another process has the old one.* A call names the number of the node and the cluster, and a
//!   process that has not both refuses it.
//! - *A rollback.* Indexers that have heard of it refuse dead epochs, and report none below the first one after it. While that one
//!   is not decided they may report the rollback point: it lacks what survives, so the kept epochs are floors, below which nothing is
//!   read. Later epochs have greater numbers than all dead ones, so a floor that is dead stands for the first of them. If no
//!   indexer has heard of the rollback, its epochs are what every other router reads too.
//!
//! Leases, topologies that tokens name and the floors of sessions end with the process, beyond which they were never promised.
//!
//! # Why nothing goes back
//!
//! The file is read once, before anything else is known. From then on a catalog of a coordinator replaces it, for good, and the
//! floors end with it. A member of the coordinator that lags may send an older catalog. It is refused, unless the leader
//! itself has an older one for a while: then the coordinators were restored from an older copy, and what they say counts. A kept catalog
//! is no evidence of that for the coordinators (the heartbeats leave its number out), because a cache may be as old as it likes.
//!
//! A catalog of another cluster never replaces the kept one in a process: the router ends as one that has served the old
//! cluster, and removes the file first (`sextant/src/roles/other_cluster.rs`). The directory's IDENTITY names the cluster of the
//! file, so that a file from elsewhere is not served.

pub(crate) mod file;
mod keeper;
mod take_over;

pub use keeper::RouterData;
pub(crate) use keeper::keep;
pub(crate) use take_over::TakeOver;
