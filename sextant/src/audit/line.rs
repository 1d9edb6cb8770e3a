//! A line of the audit, a JSON object:
//!
//! ```text
//! {"at":"2027-01-31T12:00:00.123Z","node":301,"event":"9f86d081884c7d65","what":"ddl","outcome":"began","user":"ada",
//!  "by":"password","from":"10.0.0.7:4242","door":"sql","statement":"DROP INDEX by_n"}
//! ```
//!
//! | field | contents |
//! |---|---|
//! | `at` | UTC |
//! | `node` | the node that writes |
//! | `event` | the same for both lines of a change, 16 hexadecimal digits; absent otherwise |
//! | `what` | `ddl`, `users`, `move`, `node`, `transaction`, `login`, `process` |
//! | `outcome` | `began`; then `done`, an SQLSTATE, `unknown` if no answer came, or `left` if the client went away before the outcome. `left out` in the line that counts omitted lines |
//! | `error` | the SQLSTATE that the client got although the change is made or may be |
//! | `count` | the number of refusals and failed log-ins that have no line |
//! | `user`, `by` | the user and its proof: `password`, `token N`, `certificate`; `"by":"trust"` without a user |
//! | `from`, `door` | the client's address, if it has one; `sql`, `grpc`, `http` |
//! | `statement` | the statement, with `…` for each literal; not in the second line of a change |
//! | `cluster`, `cas` | of a fact that has changed ([`super::facts`]): the cluster, and the catalog that has the change |
//! | `of`, `was`, `is` | the object of the fact, and its values before and after; one of both is absent if the fact is new, or holds no longer |

use std::net::SocketAddr;

use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use serde::Serialize;

use super::event::{EventKind, PortProtocol};
use crate::dates;
use crate::principal::{Principal, Proof};

/// The maximum length of a user's name in a line, in characters: a failed log-in may name any user.
const NAME_CHARS_MAX: usize = 64;

/// The outcome of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Began,
    Done,
    /// The event failed or was refused, with this SQLSTATE.
    Failed(&'static str),
    /// Unknown, because no answer arrived.
    Unknown,
    /// Unknown, because the client went away before the outcome.
    Left,
    /// A count of refusals and failed log-ins that have no line of their own.
    LeftOut(u64),
}

/// The sender of a request, as the fields of a line describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Requester {
    pub(super) user: Option<String>,
    pub(super) by: Option<String>,
    pub(super) from: Option<SocketAddr>,
    pub(super) door: Option<PortProtocol>,
}

impl Requester {
    /// Returns the description of a principal whose request arrived by this protocol.
    pub(super) fn of(principal: &Principal, door: PortProtocol) -> Self {
        let door = Some(door);
        match principal {
            Principal::Trusted => {
                Self { user: None, by: Some("trust".to_owned()), from: None, door }
            }
            Principal::User(user) => {
                let by = match user.by {
                    Proof::Password(_) => "password".to_owned(),
                    Proof::Token(token) => format!("token {token}"),
                    Proof::Certificate => "certificate".to_owned(),
                };
                Self { user: Some(user.name.clone()), by: Some(by), from: user.from, door }
            }
        }
    }
}

/// A line of the audit; its fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at_unix_ms: u64,
    pub(super) node: NodeId,
    pub(super) event: Option<u64>,
    pub(super) what: EventKind,
    pub(super) outcome: Outcome,
    pub(super) error: Option<&'static str>,
    pub(super) who: Requester,
    pub(super) statement: Option<String>,
    pub(super) fact: Option<Fact>,
}

/// A changed fact, with the cluster and the `cas` of the catalog that contains the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) cluster: Option<ClusterId>,
    pub(super) cas: u64,
    pub(super) of: String,
    pub(super) was: Option<String>,
    pub(super) is: Option<String>,
}

/// The JSON object of a line, with the fields that are absent left out.
#[derive(Serialize)]
struct LineJson<'a> {
    at: String,
    node: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    what: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    door: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cas: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is: Option<&'a str>,
}

impl Line {
    /// Returns the line as JSON, with a line break.
    pub(super) fn to_json(&self) -> String {
        let (outcome, count) = match self.outcome {
            Outcome::Began => ("began", None),
            Outcome::Done => ("done", None),
            Outcome::Failed(sqlstate) => (sqlstate, None),
            Outcome::Unknown => ("unknown", None),
            Outcome::Left => ("left", None),
            Outcome::LeftOut(count) => ("left out", Some(count)),
        };
        let Requester { user, by, from, door } = &self.who;
        let fact = self.fact.as_ref();
        let json = LineJson {
            at: dates::text_ms(self.at_unix_ms),
            node: self.node.0,
            event: self.event.map(|event| format!("{event:016x}")),
            what: self.what.name(),
            outcome,
            error: self.error,
            count,
            user: user.as_ref().map(|user| user.chars().take(NAME_CHARS_MAX).collect()),
            by: by.as_deref(),
            from: *from,
            door: door.map(PortProtocol::name),
            statement: self.statement.as_deref(),
            cluster: fact.and_then(|fact| Some(fact.cluster?.to_string())),
            cas: fact.map(|fact| fact.cas),
            of: fact.map(|fact| &*fact.of),
            was: fact.and_then(|fact| fact.was.as_deref()),
            is: fact.and_then(|fact| fact.is.as_deref()),
        };
        // Strings and numbers only: they can be written.
        let mut text = serde_json::to_string(&json).unwrap_or_default();
        text.push('\n');
        text
    }
}
