//! Commands to the coordinators, one after another.

use proto::Result;
use proto::rpc::command::{Command, CommandRequest, Outcome, RequestId};
use tokio::sync::Mutex;

use crate::projector::Projector;

/// Proposes commands under one client, whose numbers grow.
pub struct Proposer {
    client: u64,
    sequence: Mutex<u64>,
}

impl Proposer {
    /// A proposer of this process.
    pub fn new(projector: &Projector) -> Self {
        Self { client: projector.env.random.next_u64(), sequence: Mutex::default() }
    }

    /// Proposes a command. A refusal is an outcome, and not an error.
    pub async fn propose(&self, projector: &Projector, command: Command) -> Result<Outcome> {
        let mut sequence = self.sequence.lock().await;
        *sequence += 1;
        let request = Some(RequestId { client: self.client, sequence: *sequence });
        let request = CommandRequest { request, command };
        projector.directory.coordinator().propose(request).await
    }
}
