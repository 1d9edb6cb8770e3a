//! The interfaces between a service and the operating system (the seams). A service uses them
//! only through an [`Env`], so that the whole cluster can run in a simulation from one seed.
//!
//! | seam | real | in the simulation |
//! |---|---|---|
//! | wall clock | the system's | a counter that the test moves, jumps and drifts |
//! | time-outs and sleeps | `tokio::time` | `tokio::time`, paused and driven by the simulator |
//! | randomness | the system's generator | seeded |
//! | files | [`real::RealFs`] | `sim::SimFs`: keeps any subset of unsynced sectors at a crash |
//! | tasks and blocking work | tokio's threads | one thread; blocking work runs inline, or in steps (`sim::Interleaving`) |
//! | sockets | the binary's transport | the simulator's network |
//!
//! Services get an `Env` by value and clone it freely; it contains only shared handles.
//!
//! The method that starts a task determines the consequence of a panic ([`TaskPolicy`]):
//!
//! | method | task | after a panic |
//! |---|---|---|
//! | [`Env::spawn_request`] | answers one request, or does work that is repeated anyway | a line in the log |
//! | [`Env::spawn_restarted`] | can restart at any time | restarts after a pause of at most 10 seconds |
//! | [`Env::spawn_service`] | a loop that the process needs, or whose data a panic may leave half changed | the process ends, as it does if the loop ends |
//! | [`Env::spawn_blocking`], [`Env::spawn_bulk`] | blocking work without a waiting caller | as its policy requires |
//! | [`Env::blocking`], [`Env::blocking_briefly`], [`Env::bulk`] | blocking work of a task that waits for it | the panic continues in that task |

mod bulk;
#[cfg(test)]
mod bulk_tests;
mod clock;
mod data_dir;
mod failure;
mod files;
#[cfg(test)]
mod lending_tests;
mod panics;
pub mod real;
mod seams;
#[cfg(any(test, feature = "testing"))]
pub mod sim;
mod spawning;
#[cfg(test)]
mod task_tests;

pub use clock::{Clock, Random};
pub use data_dir::{DirectoryIdentity, check_version};
pub use failure::{TaskFailure, TaskFailureCause, TaskPolicy};
pub use files::{File, FileSystem, OpenMode, Owner, ResolvedPath, create_dir_durably};
pub use panics::{Panic, remember_panic_places};
pub use seams::Env;
pub use spawning::{BoxFuture, Bulk, LentThread, Spawner, Task};
