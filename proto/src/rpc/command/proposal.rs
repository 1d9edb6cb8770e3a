//! Proposals: a command with the information of its sender. The leader adds values that only it can decide, in the
//! record of the log.

use serde::{Deserialize, Serialize};

use super::kind::CommandKind;
use super::list::Command;
use crate::model::ids::{IndexId, UserId};
use crate::model::index::IndexInfo;

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
    /// The objects from which the command was made. It is refused if one of them has changed before it is applied.
    pub expected: Expected,
    /// The command to apply.
    pub command: Command,
}

/// The objects from which a command was made. A bucket is not among them: its name never changes, and its number is never reused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expected {
    /// Nothing that may change.
    #[default]
    Anything,
    /// These indexes, each with its [`IndexInfo::defined`]: under their names and with their definitions. Otherwise `Changed`.
    Indexes(Vec<(IndexId, u64)>),
    /// The sender, whose user the command alters. Otherwise `UnknownUser`.
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

    /// The proposal of a command that was made from indexes.
    pub fn made_from<'a>(self, indexes: impl IntoIterator<Item = &'a IndexInfo>) -> Self {
        let seen = indexes.into_iter().map(|index| (index.id, index.defined));
        Self { expected: Expected::Indexes(seen.collect()), ..self }
    }
}
