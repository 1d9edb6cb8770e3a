//! Sends commands about versions to the coordinators, one after another.

use proto::Result;
use proto::rpc::command::{Command, Outcome, Proposal, RequestId};
use tokio::sync::Mutex;

use crate::projector::Projector;

/// A client of the coordinators that sends commands with ascending request numbers.
pub struct Proposer {
    client: u64,
    sequence: Mutex<u64>,
}

impl Proposer {
    /// Creates a client with a random id.
    pub fn new(projector: &Projector) -> Self {
        Self { client: projector.env.random.next_u64(), sequence: Mutex::default() }
    }

    /// Sends a command to the coordinators. A refusal of the command is an outcome, and not an
    /// error.
    pub async fn propose(&self, projector: &Projector, command: Command) -> Result<Outcome> {
        let mut sequence = self.sequence.lock().await;
        *sequence += 1;
        let request = RequestId { client: self.client, sequence: *sequence };
        let proposal = Proposal::from(command).with_request(request);
        Ok(projector.directory.coordinator().propose(proposal).await?.outcome)
    }
}
