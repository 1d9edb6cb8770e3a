//! The streams to the indexers: maintenance streams, which carry new mutations, and backfills,
//! which carry the existing documents to a new index.

mod backfill;
mod bodies;
mod context;
mod evaluate;
mod frames;
mod frames_ahead;
mod indexes;
mod log_reader;
mod markers;
mod reader;
mod stream;
mod task_stream;

pub use backfill::{Backfill, Readings};
pub use context::StreamContext;
pub use evaluate::BackfillContent;
pub use stream::MaintenanceStream;
pub use task_stream::TaskStream;
