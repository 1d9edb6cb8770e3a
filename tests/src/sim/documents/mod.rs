//! The documents of the simulated projectors, on simulated disks, and the judge's *mirror* of them.
//!
//! A projector uses the product's store through a *tapped* store (`tapped.rs`). Each change is
//! reported to the mirror before it begins and after it has ended. So the mirror always knows the
//! contents that the store must have (`mirror.rs`, `contents.rs`): the changes that have succeeded,
//! and those *in doubt*, which failed with the disk or were interrupted by a crash.
//!
//! When a process opens the store again, everything in it is read and compared (`reconcile.rs`):
//! records, extents, logs and all documents. The store must have all changes that have succeeded,
//! and some of those in doubt, each as a whole. Anything else is a violation: the loss of an
//! acknowledged mutation above all. The mirror then continues from the contents of the store.
//!
//! The mirror also remembers the histories that were left by rewinds, new branches and older copies
//! (`histories.rs`), by which the judge checks scans from before the loss.
//!
//! A bucket may have copies on several projectors. The mirrors of all projectors share a *ledger*
//! (`ledger.rs`), which has every mutation by its place, so that two differing copies are detected
//! at once, and a log that begins late can be completed.
//!
//! An operator copies a projector's disk at times, between two changes (`copies.rs`). An older copy
//! is restored together with the mirror of its moment, so other losses of the store are still
//! detected. The only copy of a bucket is then not served until the operator accepts the loss, some
//! seconds later, with the product's own recovery ([`super::hosts::Host::accept_loss`]).

mod contents;
pub mod copies;
mod histories;
mod ledger;
mod mirror;
mod options;
mod reconcile;
mod tapped;

#[cfg(test)]
mod tests;

pub use ledger::Ledger;
pub use mirror::Mirror;
pub use options::options;
pub use tapped::TappedStore;
