//! What the log is for.

use proto::Result;

/// What the log is for. Every member applies the same commands in the same order, so `apply` may
/// depend on nothing but the state and its arguments.
pub trait StateMachine: Send + 'static {
    /// What applying a command answers.
    type Outcome: Send + 'static;

    /// Applies the command at a log position. A command that is refused is an outcome; an error means
    /// that this member cannot go on (a command it cannot read, say), and stops it.
    fn apply(&mut self, index: u64, data: &[u8]) -> Result<Self::Outcome>;

    /// The state as bytes.
    fn snapshot(&self) -> Result<Vec<u8>>;

    /// Replaces the state by one from [`StateMachine::snapshot`].
    fn restore(&mut self, snapshot: &[u8]) -> Result<()>;
}
