//! Proposals: commands with the identity of their sender, and with the objects that must not have
//! changed. The leader adds values that only it can choose when it writes the command to the log.

use serde::{Deserialize, Serialize};

use super::kind::CommandKind;
use super::list::Command;
use crate::model::ids::{IndexId, UserId};
use crate::model::index::IndexInfo;

/// The identity of a client's request, so that a repeated request is not executed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    /// The client's random number.
    pub client: u64,
    /// The number of the request among those of this client.
    pub sequence: u64,
}

/// A command with its sender, as sent to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The identity of the request, so that it can be repeated; `None` for commands of the leader
    /// itself.
    pub request: Option<RequestId>,
    /// The user that sends the command; `None` for processes of the cluster and for trusted
    /// clients.
    pub sender: Option<UserId>,
    /// The objects from which the sender has derived the command. If one of them has changed
    /// since, the command is refused.
    pub expected: Expected,
    /// The command to apply.
    pub command: Command,
}

/// The objects that must not have changed since a command was derived from them. Buckets are not
/// included, because a bucket's name never changes and its number is never reused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expected {
    /// The command was derived from no changeable object.
    #[default]
    Anything,
    /// These indexes must still have the name and the definition of these numbers
    /// ([`IndexInfo::defined`]); otherwise the command is refused with `Changed`.
    Indexes(Vec<(IndexId, u64)>),
    /// The command changes its sending user, who must still exist; otherwise it is refused with
    /// `UnknownUser`.
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
    /// Returns the proposal with the identity of a request, so that it can be repeated.
    pub fn with_request(self, request: RequestId) -> Self {
        Self { request: Some(request), ..self }
    }

    /// Returns the proposal with the condition that these indexes have not changed.
    pub fn expecting_unchanged<'a>(self, indexes: impl IntoIterator<Item = &'a IndexInfo>) -> Self {
        let seen = indexes.into_iter().map(|index| (index.id, index.defined));
        Self { expected: Expected::Indexes(seen.collect()), ..self }
    }
}
