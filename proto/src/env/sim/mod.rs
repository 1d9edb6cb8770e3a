//! Simulated twins of the seams: the same traits, driven by a test from one seed.
//!
//! [`world`] makes an [`Env`] whose clock, randomness, files and tasks belong to the test: time is what
//! the test sets, files live in memory and lose at a crash what a disk may lose ([`SimFs`]), tasks run
//! on the test's own (single-threaded) runtime and blocking work runs inline, so that nothing depends
//! on how threads happen to be scheduled.

mod disk;
mod fs;
mod handle;
mod inode;
mod world;

pub use fs::SimFs;
pub use world::{InlineSpawner, SimClock, process, world};
