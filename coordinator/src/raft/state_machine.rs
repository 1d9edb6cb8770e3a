//! The state machine that the log replicates.

use proto::Result;

use super::members::MemberChange;

/// The state machine that the log replicates. Every member applies the same commands in the same order, so `apply`
/// may depend only on the state and its arguments.
pub trait StateMachine: Send + 'static {
    /// The answer to an applied command.
    type Outcome: Send + 'static;

    /// Applies the command at a log position and returns its outcome; a refusal of the command is
    /// an outcome too. An error means that this member cannot continue, for example because it
    /// cannot decode the command. The error stops the member.
    fn apply(&mut self, index: u64, data: &[u8]) -> Result<Self::Outcome>;

    /// Applies a change of the members at a log position. An error refuses the change, on all
    /// members alike.
    fn change_members(&mut self, _index: u64, _change: &MemberChange) -> Result<()> {
        Ok(())
    }

    /// Encodes the state.
    fn snapshot(&self) -> Result<Vec<u8>>;

    /// Replaces the state with one that [`StateMachine::snapshot`] encoded.
    fn restore(&mut self, snapshot: &[u8]) -> Result<()>;
}
