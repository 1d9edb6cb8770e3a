//! Proposals: a command with the information of its sender. The leader adds values that only it can decide, in the
//! record of the log.

use serde::{Deserialize, Serialize};

use super::kind::{CommandKind, Need};
use super::list::Command;
use crate::model::ids::{BucketId, UserId};

/// Identifies one request of one client, so that a repeated request is not executed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    /// The client, a random number.
    pub client: u64,
    /// The number of the request, counted by the client.
    pub sequence: u64,
}

/// A command as its sender proposes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The identity of the request, for retries; commands of the leader itself have none.
    pub request: Option<RequestId>,
    /// The user that sends the command; `None` for processes of the cluster and for trusted clients.
    pub sender: Option<UserId>,
    /// The objects that the names in the command meant when the sender looked them up.
    pub expected: Expected,
    /// The command to apply.
    pub command: Command,
}

/// The object that a name in a command must still mean when the command is applied. The object may have been dropped since, and another one
/// of its name created. Then the command is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expected {
    /// Whatever it means then.
    #[default]
    Anything,
    /// The bucket that the command names, or an index of it that it names ([`Command::need`]). Otherwise `Unknown`.
    Bucket(BucketId),
    /// The sender: the command alters its own user. Otherwise `UnknownUser`.
    Sender,
}

impl From<Command> for Proposal {
    fn from(command: Command) -> Self {
        Self { request: None, sender: None, expected: Expected::Anything, command }
    }
}

impl<C: CommandKind> From<C> for Proposal
where
    Command: From<C>,
{
    fn from(command: C) -> Self {
        Command::from(command).into()
    }
}

impl Proposal {
    /// The proposal as a request that may be repeated.
    pub fn with_request(self, request: RequestId) -> Self {
        Self { request: Some(request), ..self }
    }

    /// True if the command has a name of the kind that is expected to mean something.
    pub fn has_expected_name(&self) -> bool {
        match self.expected {
            Expected::Anything => true,
            Expected::Bucket(_) => matches!(
                self.command.need(),
                Need::Bucket(..) | Need::Index(..) | Need::Generation(_, _, Some(_))
            ),
            Expected::Sender => {
                let need = self.command.need();
                self.sender.is_some() && matches!(need, Need::Oneself(_) | Need::OwnPassword(_))
            }
        }
    }
}
