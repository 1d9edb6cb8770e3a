//! Login policy: how the ports for users admit clients, and the proofs that they require.
//!
//! A process either trusts its machine or requires a proof. A process that trusts its machine
//! admits any client whose connection has a loopback address at both ends. Otherwise each client
//! needs a proof: a password (SQL), a token (gRPC, HTTP) or a certificate (all ports). With TLS,
//! a process that requires proofs accepts only encrypted connections. Without TLS, a client of
//! another machine cannot log in, since its proof would cross the network in clear text.
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
use crate::audit::{Audit, PortProtocol};
use crate::flow::{
    ClientCapacity, ClientLimits, Limit, SessionPlace, StatementPlace, Work, is_administrator,
};
use crate::principal::{Principal, Proof};
use crate::tls::{Identity, TlsSettings};

/// The scheme of the header `Authorization` (RFC 6750).
const BEARER: &str = "bearer";

/// The login policy of a process.
pub struct LoginPolicy {
    kind: AdmittedClients,
    tls: Option<Arc<TlsSettings>>,
    throttle: Throttle,
    audit: Audit,
    flow: Arc<ClientCapacity>,
    env: Env,
}

/// The clients that a process admits.
enum AdmittedClients {
    /// Any client of this machine.
    Trust,
    /// Clients that prove to be one of these users.
    Users(Arc<NewestUsers>),
}

/// The next step for a client whose connection is accepted.
#[derive(Debug, PartialEq)]
pub enum LoginStep {
    /// The client is admitted without a proof.
    Trusted,
    /// The client's certificate is the proof.
    Certificate(Principal),
    /// The client must still prove its identity.
    Proof,
}

impl LoginPolicy {
    /// Returns a policy that admits any client of this machine, with default limits and without
    /// an audit.
    pub fn trust(env: &Env) -> Arc<Self> {
        Self::trust_within(ClientLimits::default(), Audit::off(), env)
    }

    /// Returns a policy that admits any client of this machine, with these limits and this audit.
    pub fn trust_within(limits: ClientLimits, audit: Audit, env: &Env) -> Arc<Self> {
        let limits = ClientLimits { login_failures_max: 0, ..limits };
        Self::new((AdmittedClients::Trust, None), limits, audit, env)
    }

    /// Returns a policy that admits users with a proof. `login_failures_max` limits the failed
    /// log-ins of an address per minute.
    pub fn for_users(
        users: Arc<NewestUsers>,
        tls: Option<Arc<TlsSettings>>,
        login_failures_max: u32,
        env: &Env,
    ) -> Arc<Self> {
        let limits = ClientLimits { login_failures_max, ..ClientLimits::default() };
        Self::for_users_within(users, tls, (limits, Audit::off()), env)
    }

    /// Returns a policy that admits users with a proof, with these limits and this audit.
    pub fn for_users_within(
        users: Arc<NewestUsers>,
        tls: Option<Arc<TlsSettings>>,
        (limits, audit): (ClientLimits, Audit),
        env: &Env,
    ) -> Arc<Self> {
        Self::new((AdmittedClients::Users(users), tls), limits, audit, env)
    }

    fn new(
        (kind, tls): (AdmittedClients, Option<Arc<TlsSettings>>),
        limits: ClientLimits,
        audit: Audit,
        env: &Env,
    ) -> Arc<Self> {
        let throttle = Throttle::new(limits.login_failures_max);
        Arc::new(Self {
            kind,
            tls,
            throttle,
            audit,
            flow: ClientCapacity::new(limits),
            env: env.clone(),
        })
    }

    /// Returns the limits of the admitted clients and how much of them is in use.
    pub fn flow(&self) -> &Arc<ClientCapacity> {
        &self.flow
    }

    /// Reserves one of the limited number of sessions for a principal; an error if the user has
    /// too many. Returns `None` for trusted clients, which only the port limits.
    pub fn session(&self, principal: &Principal) -> Result<Option<SessionPlace>> {
        let Some(user) = self.user(principal) else { return Ok(None) };
        self.flow.users.session(&user).map(Some)
    }

    /// Reserves capacity for the work of a principal; an error if too much work is running.
    pub fn statement(&self, principal: &Principal, work: Work) -> Result<StatementPlace> {
        self.flow.users.statement(self.user(principal).as_deref(), work)
    }

    /// Returns true if a principal may use capacity that is reserved for administrators. A
    /// trusted client always may.
    pub fn is_administrator(&self, principal: &Principal) -> bool {
        match principal {
            Principal::Trusted => true,
            Principal::User(_) => self.user(principal).is_some_and(|user| is_administrator(&user)),
        }
    }

    /// Returns the audit of the process.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Writes a line about a refused client to the audit.
    pub fn note_refused(
        &self,
        link: &Link,
        door: PortProtocol,
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

    /// Returns the TLS settings of the ports, with their certificates; `None` if connections are
    /// not encrypted.
    pub fn tls(&self) -> Option<&Arc<TlsSettings>> {
        self.tls.as_ref()
    }

    /// Returns the seconds until the certificate of the ports expires, negative if it has
    /// expired; `None` without a certificate.
    pub fn certificate_seconds_left(&self) -> Option<i64> {
        let now = i64::try_from(self.env.clock.unix_ms() / 1000).unwrap_or(i64::MAX);
        self.tls.as_ref().map(|tls| tls.not_after_unix_s().saturating_sub(now))
    }

    /// Returns the word for this policy in the line that a process prints when it is ready.
    pub fn ready_line_word(&self) -> &'static str {
        match self.kind {
            AdmittedClients::Trust => "trust",
            AdmittedClients::Users(_) => "scram",
        }
    }

    /// Accepts a connection and returns the next step, or refuses the connection because of its
    /// origin.
    pub fn greet(&self, link: &Link) -> Result<LoginStep> {
        match &self.kind {
            AdmittedClients::Trust if link.is_of_this_machine() => Ok(LoginStep::Trusted),
            AdmittedClients::Trust => {
                Err(login_error("this port trusts clients of its own machine only")
                    .with_hint("start the process with certificates and auth = scram"))
            }
            AdmittedClients::Users(_) if self.tls.is_some() && !link.is_encrypted() => {
                Err(login_error("this port takes encrypted connections only")
                    .with_hint("connect with TLS: sslmode=require, https"))
            }
            AdmittedClients::Users(_) if !link.is_encrypted() && !link.is_of_this_machine() => {
                Err(login_error("this port lets in clients of its own machine only")
                    .with_hint("start the process with certificates"))
            }
            AdmittedClients::Users(users) => match link.certificate() {
                Some(identity) => {
                    self.certified(&users.current(), identity, link).map(LoginStep::Certificate)
                }
                None => Ok(LoginStep::Proof),
            },
        }
    }

    /// Returns the principal of the user that a certificate names. Returns an error if the
    /// certificate names no user of this cluster.
    fn certified(&self, users: &Users, identity: &Identity, link: &Link) -> Result<Principal> {
        let Identity::User { cluster, name } = identity else {
            return Err(login_error(format!("the certificate of {identity} is no user's")));
        };
        if self.tls().is_some_and(|tls| tls.cluster() != *cluster) {
            return Err(login_error(format!("the certificate is of {identity}, another cluster")));
        }
        match users.find_by_name(name) {
            Some(user) => Ok(Principal::user(user, Proof::Certificate, link.peer())),
            None => Err(login_error(format!("there is no user \"{name}\" of the certificate"))),
        }
    }

    /// Returns the principal of a gRPC or HTTP request, from its header `Authorization` or the
    /// certificate of its connection. A token has precedence over a certificate.
    pub fn request_principal(
        &self,
        link: &Link,
        door: PortProtocol,
        authorization: Option<&[u8]>,
    ) -> Result<Principal> {
        let found = self.find_request_principal(link, authorization);
        found.inspect_err(|error| self.note_refused(link, door, None, error.code.sqlstate()))
    }

    fn find_request_principal(
        &self,
        link: &Link,
        authorization: Option<&[u8]>,
    ) -> Result<Principal> {
        let greeting = self.greet(link)?;
        let AdmittedClients::Users(users) = &self.kind else { return Ok(Principal::Trusted) };
        let Some(header) = authorization else {
            return match greeting {
                LoginStep::Certificate(principal) => Ok(principal),
                LoginStep::Trusted | LoginStep::Proof => {
                    Err(login_error("a request needs a token or a client certificate")
                        .with_hint("send Authorization: Bearer <token>"))
                }
            };
        };
        let users = users.current();
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
                self.count_failure(link);
                Err(Error::new(ErrorCode::BadPassword, "the token is not valid"))
            }
        }
    }

    /// Returns the account with a user name, for a log-in with SCRAM.
    pub fn account(&self, name: &str) -> Account {
        Account::of(&self.users(), name, self.env.clock.unix_ms())
    }

    /// Returns the presently known users; none if clients are trusted.
    fn users(&self) -> Arc<Users> {
        match &self.kind {
            AdmittedClients::Users(users) => users.current(),
            AdmittedClients::Trust => Arc::default(),
        }
    }

    /// Draws a nonce (a random text) for a log-in with SCRAM.
    pub fn nonce(&self) -> String {
        super::scram::nonce(&*self.env.random)
    }

    /// Returns the principal of a user that has proved to know the password.
    pub fn admit(&self, user: &User, link: &Link) -> Principal {
        Principal::user(user, Proof::Password(user.secret_no), link.peer())
    }

    /// Returns the error of a failed log-in with a password. The error does not reveal why the
    /// log-in failed.
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

    /// Counts a failed log-in for the client's address.
    pub fn count_failure(&self, link: &Link) {
        self.flow.failed_logins.fetch_add(1, Ordering::Relaxed);
        self.throttle.count_failure(link.address());
    }

    /// Returns the present user of a principal; `None` for a trusted client.
    pub fn user(&self, principal: &Principal) -> Option<Arc<User>> {
        let Principal::User(who) = principal else { return None };
        self.users().find_user(&who.name, who.id).cloned()
    }

    /// Returns a receiver that gets the `cas` of each change of the users; `None` if clients are
    /// trusted.
    pub fn changes(&self) -> Option<watch::Receiver<u64>> {
        match &self.kind {
            AdmittedClients::Trust => None,
            AdmittedClients::Users(users) => Some(users.changes()),
        }
    }

    /// Returns an error if the proof of a principal is no longer valid: its user was dropped or
    /// has another password, or its token was dropped.
    pub fn check(&self, principal: &Principal) -> Result<()> {
        match (&self.kind, principal) {
            (AdmittedClients::Trust, _) => Ok(()),
            (AdmittedClients::Users(_), Principal::Trusted) => {
                Err(Error::internal("a port for users has a session without a user"))
            }
            (AdmittedClients::Users(users), Principal::User(user)) => {
                match still_valid(&users.current(), user, self.env.clock.unix_ms()) {
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

/// Returns the error for a client that is not admitted.
fn login_error(why: impl Into<String>) -> Error {
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
