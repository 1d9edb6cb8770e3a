//! Simulated twins of the seams: the same traits, driven by a test from one seed.
//!
//! [`world`] makes an [`Env`](super::Env) whose clock, random numbers, files and tasks belong to
//! the test. The test sets the time, files are in memory and may lose unsynced data at a crash
//! ([`SimFs`]), tasks run on the test's single-threaded runtime, and blocking work runs on that
//! thread too. So nothing depends on the scheduling of threads.
//!
//! [`Turns`] runs blocking work on threads instead, one at a time, in an order drawn from the
//! seed. [`Interleaving`] does so for many processes, and lets simulated time pass between two
//! steps.

mod coroutine;
mod disk;
mod fs;
mod handle;
mod inode;
mod interleaving;
mod pace;
mod process_spawner;
mod turns;
mod world;

pub use disk::{FlippedBit, OccurredFaults};
pub use fs::{DiskCopy, SimFs};
pub use interleaving::{Interleaving, InterleavingCounts};
pub use pace::PaceOdds;
pub use process_spawner::ProcessSpawners;
pub use turns::Turns;
pub use world::{InlineSpawner, SimClock, real_env_with_sim_fs, world};
