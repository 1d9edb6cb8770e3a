//! The tasks of a projector that communicate with the coordinators: registration, heartbeats,
//! catalog, stability timestamps, and reports of durable positions (SYNC).
//!
//! Each task is a loop that retries forever with growing pauses. While no coordinator answers,
//! writes, reads and streams of known buckets continue. Only a process that was just started
//! waits for its first catalog: until then the number of a stored bucket may belong to another
//! bucket ([`bucket_ids`]), so calls get the error `Unavailable`, and SYNC reports nothing.
//!
//! **The only copy of a bucket is not served before the coordinators have compared it** with the
//! last epoch ([`opening`]). A bucket that lacks mutations of that epoch reports nothing until an
//! operator has accepted the loss. Otherwise the indexes would be rolled back to match it.
//!
//! **Catalogs never move back.** A lagging coordinator may send an older catalog than one that
//! was applied before, perhaps by an earlier process. The `cas` of the newest catalog is stored
//! with the documents, and older catalogs are ignored. So a bucket that the newest catalog lacks
//! was dropped, and a new stream never lacks an index that an earlier one has carried.

mod bucket_ids;
mod catalog;
mod opening;
mod registration;
mod retry;
mod sync;

pub use catalog::follow_catalog;
pub use opening::open_sources;
pub use registration::stay_registered;
pub use sync::sync_positions;
#[cfg(feature = "testing")]
pub use sync::{Reporter, report_changes};
