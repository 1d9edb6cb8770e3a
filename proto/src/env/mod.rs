//! The seams: a service reaches the operating system only through an [`Env`], so that the whole cluster can run in a
//! simulation from one seed.
//!
//! | seam | real | in the simulation |
//! |---|---|---|
//! | wall clock | the system's | a counter that the test moves, jumps and drifts |
//! | time-outs and sleeps | `tokio::time` | `tokio::time`, paused and driven by the simulator |
//! | randomness | the system's generator | seeded |
//! | files | [`real::RealFs`] | `sim::SimFs`: keeps any subset of unsynced sectors at a crash |
//! | tasks and blocking work | tokio's threads | one thread; blocking work runs inline |
//! | sockets | the binary's transport | the simulator's network |
//!
//! Services get an `Env` by value and clone it freely; it holds nothing but shared handles.

mod clock;
mod files;
pub mod real;
mod seams;
#[cfg(any(test, feature = "testing"))]
pub mod sim;
mod spawning;

pub use clock::{Clock, Random};
pub use files::{File, FileSystem, OpenMode, create_dir_durably};
pub use seams::Env;
pub use spawning::{BoxFuture, Spawner, Task};
