//! Login policy: how the ports for users admit clients, and the proofs that they require.
//!
//! A process either trusts its machine and admits any client whose connection has a loopback
//! address at both ends, or it requires a proof from each client: a password (SQL), a token (gRPC,
//! HTTP) or a certificate (all ports). A process with TLS then accepts only encrypted connections.
//! Without TLS, a client of another machine cannot log in, since its proof would cross the network
//! in clear text.
//!
//! The proof of a session is checked again with each statement, and a token with each request.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::env::Env;
use proto::model::users::{User, Users};
use proto::{Error, ErrorCode, Result};

use tokio::sync::watch;

use super::link::Link;
use super::newest_users::{NewestUsers, still_valid};
use super::scram::Account;
use super::throttle::Throttle;
use super::tokens::{self, TokenRefusal};
use crate::audit::{Audit, Door};
use crate::flow::{
    ClientLimits, Flow, Limit, SessionPlace, StatementPlace, Work, is_administrator,
};
use crate::principal::{Principal, Proof};
use crate::tls::{Identity, TlsSettings};

/// The scheme of the header `Authorization` (RFC 6750).
const BEARER: &str = "bearer";

/// The login policy of a process.
pub struct LoginPolicy {
    kind: Kind,
    tls: Option<Arc<TlsSettings>>,
    throttle: Throttle,
    audit: Audit,
    flow: Arc<Flow>,
    env: Env,
}

/// The clients that are admitted.
enum Kind {
    /// Any client of this machine.
    Trust,
    /// Clients that prove to be one of these users.
    Users(Arc<NewestUsers>),
}

/// The next step for a client whose connection is accepted.
#[derive(Debug, PartialEq)]
pub enum Greeting {
    /// The client is admitted without a proof.
    Trusted,
    /// The client's certificate is the proof.
    Certificate(Principal),
    /// The client must still prove its identity.
    Proof,
}

impl LoginPolicy {
    /// Returns a policy that admits any client of this machine.
    pub fn trust(env: &Env) -> Arc<Self> {
        Self::trust_within(ClientLimits::default(), Audit::off(), env)
    }

    /// Returns a policy that admits any client of this machine, with these limits and this audit.
    pub fn trust_within(limits: ClientLimits, audit: Audit, env: &Env) -> Arc<Self> {
        let limits = ClientLimits { login_failures_max: 0, ..limits };
        Self::new((Kind::Trust, None), limits, audit, env)
    }

    /// Returns a policy that admits users. `login_failures_max` limits the failed log-ins of an
    /// address per minute.
    pub fn for_users(
        users: Arc<NewestUsers>,
        tls: Option<Arc<TlsSettings>>,
        login_failures_max: u32,
        env: &Env,
    ) -> Arc<Self> {
        let limits = ClientLimits { login_failures_max, ..ClientLimits::default() };
        Self::for_users_within(users, tls, (limits, Audit::off()), env)
    }

    /// Returns a policy that admits users, with these limits and this audit.
    pub fn for_users_within(
        users: Arc<NewestUsers>,
        tls: Option<Arc<TlsSettings>>,
        (limits, audit): (ClientLimits, Audit),
        env: &Env,
    ) -> Arc<Self> {
        Self::new((Kind::Users(users), tls), limits, audit, env)
    }

    fn new(
        (kind, tls): (Kind, Option<Arc<TlsSettings>>),
        limits: ClientLimits,
        audit: Audit,
        env: &Env,
    ) -> Arc<Self> {
        let throttle = Throttle::new(limits.login_failures_max);
        Arc::new(Self { kind, tls, throttle, audit, flow: Flow::new(limits), env: env.clone() })
    }

    /// Returns the limits of the admitted clients, with their present use.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// Takes a place for a session of a principal; an error if the user has too many. `None` for
    /// trusted clients, which only the port limits.
    pub fn session(&self, principal: &Principal) -> Result<Option<SessionPlace>> {
        let Some(user) = self.user(principal) else { return Ok(None) };
        self.flow.users.session(&user).map(Some)
    }

    /// Takes a place for the work of a principal; an error if too much is running.
    pub fn statement(&self, principal: &Principal, work: Work) -> Result<StatementPlace> {
        self.flow.users.statement(self.user(principal).as_deref(), work)
    }

    /// True if a principal may use what is reserved for administrators; always for a trusted
    /// client.
    pub fn is_administrator(&self, principal: &Principal) -> bool {
        match principal {
            Principal::Trusted => true,
            Principal::User(_) => self.user(principal).is_some_and(|user| is_administrator(&user)),
        }
    }

    /// The audit of the process.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Writes a line about a refused client to the audit.
    pub fn note_refused(
        &self,
        link: &Link,
        door: Door,
        user: Option<&str>,
        sqlstate: &'static str,
    ) {
        // A proof from an address with too many failures is not checked, so this is no further failure.
        if sqlstate == ErrorCode::TooBusy.sqlstate() {
            return;
        }
        let user = user.or_else(|| link.certificate().and_then(Identity::user));
        self.audit.login_failed(link.peer(), door, user, sqlstate);
    }

    /// Returns the certificates of the ports; `None` if connections are not encrypted.
    pub fn tls(&self) -> Option<&Arc<TlsSettings>> {
        self.tls.as_ref()
    }

    /// Returns the seconds until the certificate of the ports expires; negative afterwards, `None`
    /// without a certificate.
    pub fn certificate_seconds_left(&self) -> Option<i64> {
        let now = i64::try_from(self.env.clock.unix_ms() / 1000).unwrap_or(i64::MAX);
        self.tls.as_ref().map(|tls| tls.not_after_unix_s().saturating_sub(now))
    }

    /// Returns the name of the policy in the ready line.
    pub fn word(&self) -> &'static str {
        match self.kind {
            Kind::Trust => "trust",
            Kind::Users(_) => "scram",
        }
    }

    /// Accepts a connection and returns the next step, or refuses the connection because of its
    /// origin.
    pub fn greet(&self, link: &Link) -> Result<Greeting> {
        match &self.kind {
            Kind::Trust if link.is_of_this_machine() => Ok(Greeting::Trusted),
            Kind::Trust => Err(refused("this port trusts clients of its own machine only")
                .with_hint("start the process with certificates and auth = scram")),
            Kind::Users(_) if self.tls.is_some() && !link.is_encrypted() => {
                Err(refused("this port takes encrypted connections only")
                    .with_hint("connect with TLS: sslmode=require, https"))
            }
            Kind::Users(_) if !link.is_encrypted() && !link.is_of_this_machine() => {
                Err(refused("this port lets in clients of its own machine only")
                    .with_hint("start the process with certificates"))
            }
            Kind::Users(users) => match link.certificate() {
                Some(identity) => {
                    self.certified(&users.now(), identity, link).map(Greeting::Certificate)
                }
                None => Ok(Greeting::Proof),
            },
        }
    }

    fn certified(&self, users: &Users, identity: &Identity, link: &Link) -> Result<Principal> {
        let Identity::User { cluster, name } = identity else {
            return Err(refused(format!("the certificate of {identity} is no user's")));
        };
        if self.tls().is_some_and(|tls| tls.cluster() != *cluster) {
            return Err(refused(format!("the certificate is of {identity}, another cluster")));
        }
        match users.named(name) {
            Some(user) => Ok(Principal::user(user, Proof::Certificate, link.peer())),
            None => Err(refused(format!("there is no user \"{name}\" of the certificate"))),
        }
    }

    /// Returns the principal of a request with these credentials. A token has precedence over a
    /// certificate.
    pub fn bearer(
        &self,
        link: &Link,
        door: Door,
        authorization: Option<&[u8]>,
    ) -> Result<Principal> {
        let found = self.bearer_of(link, authorization);
        found.inspect_err(|error| self.note_refused(link, door, None, error.code.sqlstate()))
    }

    fn bearer_of(&self, link: &Link, authorization: Option<&[u8]>) -> Result<Principal> {
        let greeting = self.greet(link)?;
        let Kind::Users(users) = &self.kind else { return Ok(Principal::Trusted) };
        let Some(header) = authorization else {
            return match greeting {
                Greeting::Certificate(principal) => Ok(principal),
                Greeting::Trusted | Greeting::Proof => {
                    Err(refused("a request needs a token or a client certificate")
                        .with_hint("send Authorization: Bearer <token>"))
                }
            };
        };
        let users = users.now();
        let found = match token_of(header) {
            Some(token) => tokens::user_of(&users, token, self.env.clock.unix_ms()),
            None => Err(TokenRefusal::Unknown),
        };
        match found {
            Ok((user, id)) => Ok(Principal::user(user, Proof::Token(id), link.peer())),
            Err(TokenRefusal::Ended) => {
                Err(Error::new(ErrorCode::BadPassword, "the token has ended")
                    .with_hint("ALTER USER … TOKEN makes another one"))
            }
            Err(TokenRefusal::Unknown) => {
                // A token cannot be guessed, so the limit only spares the log.
                self.check_failures(link)?;
                self.failed(link);
                Err(Error::new(ErrorCode::BadPassword, "the token is not valid"))
            }
        }
    }

    /// Returns the account of a user name, for an exchange of SCRAM.
    pub fn account(&self, name: &str) -> Account {
        Account::of(&self.users(), name, self.env.clock.unix_ms())
    }

    /// Returns the presently known users; none if clients are trusted.
    fn users(&self) -> Arc<Users> {
        match &self.kind {
            Kind::Users(users) => users.now(),
            Kind::Trust => Arc::default(),
        }
    }

    /// Draws a nonce of SCRAM.
    pub fn nonce(&self) -> String {
        super::scram::nonce(&*self.env.random)
    }

    /// Returns the principal of a user that has proved to know the password.
    pub fn admit(&self, user: &User, link: &Link) -> Principal {
        Principal::user(user, Proof::Password(user.secret_no), link.peer())
    }

    /// Returns the error of a failed log-in with a password, which does not reveal the reason.
    pub fn bad_password(&self, name: &str) -> Error {
        let text = format!("password authentication failed for user \"{name}\"");
        let error = Error::new(ErrorCode::BadPassword, text);
        match self.users().by_name.is_empty() {
            // This error reveals nothing about names.
            true => error.with_hint(
                "no user is known here: `sextant init` makes the first one, and coordinators must have answered",
            ),
            false => error,
        }
    }

    /// Returns an error if the client's address has had too many failed log-ins.
    pub fn check_failures(&self, link: &Link) -> Result<()> {
        self.throttle.check(link.address()).inspect_err(|_| {
            self.flow.refusals.count(Limit::LoginFailures);
        })
    }

    /// Counts a failed log-in of the client's address.
    pub fn failed(&self, link: &Link) {
        self.flow.failed_logins.fetch_add(1, Ordering::Relaxed);
        self.throttle.failed(link.address());
    }

    /// Returns the user of a principal with its present properties; `None` for a trusted client.
    pub fn user(&self, principal: &Principal) -> Option<Arc<User>> {
        let Principal::User(who) = principal else { return None };
        self.users().same(&who.name, who.id).cloned()
    }

    /// Returns a receiver of the `cas` of each change of the users; `None` if clients are trusted.
    pub fn changes(&self) -> Option<watch::Receiver<u64>> {
        match &self.kind {
            Kind::Trust => None,
            Kind::Users(users) => Some(users.changes()),
        }
    }

    /// Returns an error if the proof of a principal was withdrawn: its user was dropped, has
    /// another password, or its token was dropped.
    pub fn check(&self, principal: &Principal) -> Result<()> {
        match (&self.kind, principal) {
            (Kind::Trust, _) => Ok(()),
            (Kind::Users(_), Principal::Trusted) => {
                Err(Error::internal("a port for users has a session without a user"))
            }
            (Kind::Users(users), Principal::User(user)) => {
                match still_valid(&users.now(), user, self.env.clock.unix_ms()) {
                    Some(_) => Ok(()),
                    None => {
                        let what = "was dropped, or has another password or token";
                        let text = format!("the session has ended: user \"{}\" {what}", user.name);
                        Err(Error::new(ErrorCode::SessionEnded, text).with_hint("log in again"))
                    }
                }
            }
        }
    }
}

fn refused(why: impl Into<String>) -> Error {
    Error::new(ErrorCode::BadLogin, why)
}

/// Returns the token in a value of the header `Authorization`.
fn token_of(header: &[u8]) -> Option<&str> {
    let (scheme, token) = std::str::from_utf8(header).ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case(BEARER).then(|| token.trim())
}

#[cfg(test)]
#[path = "login_policy_tests.rs"]
mod tests;
