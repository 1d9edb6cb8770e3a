//! What a projector does with the coordinator: registers, says that it lives, follows catalog and
//! stability timestamps, and says how far its buckets are (SYNC).
//!
//! Each is a loop that tries again for ever, a little later each time; while no coordinator answers,
//! writes, reads and streams of known buckets go on.
//!
//! **Catalogs never go back.** A lagging coordinator may show an older catalog than one that was taken
//! over before, perhaps by this process's predecessor. The `cas` of the newest is kept with the documents,
//! and older ones are ignored: so a bucket that is missing was dropped (not "not made yet"), and a
//! stream never begins without an index that it carried before.

mod catalog;
mod registration;
mod retry;
mod sync;

pub use catalog::follow_catalog;
pub use registration::stay_registered;
pub use sync::sync_positions;
