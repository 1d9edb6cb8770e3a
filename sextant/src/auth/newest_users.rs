//! A shared holder of the newest users that this process has received.

use std::sync::Arc;

use arc_swap::ArcSwap;
use proto::model::users::{User, Users};
use tokio::sync::watch;

use crate::principal::{LoggedInUser, Principal, Proof};

/// The newest users that this process has received. Reading takes no lock, and a change takes
/// effect with the next read.
#[derive(Default)]
pub struct NewestUsers {
    newest: ArcSwap<Users>,
    /// The `cas` of the newest users, for callers that wait for a change.
    newest_cas: watch::Sender<u64>,
}

impl NewestUsers {
    /// Returns a holder that begins with these users.
    pub fn new(users: Arc<Users>) -> Self {
        Self { newest_cas: watch::Sender::new(users.cas), newest: ArcSwap::new(users) }
    }

    /// Returns the newest known users.
    pub fn current(&self) -> Arc<Users> {
        self.newest.load_full()
    }

    /// Replaces the users by newer ones. Ignores older users, which come from a coordinator that
    /// lags.
    pub fn learn(&self, users: Arc<Users>) {
        self.newest.rcu(|known| {
            let newer = if users.cas > known.cas { &users } else { known };
            Arc::clone(newer)
        });
        let cas = self.newest.load().cas;
        self.newest_cas
            .send_if_modified(|newest| std::mem::replace(newest, cas.max(*newest)) < cas);
    }

    /// Returns a receiver that gets the `cas` of each change of the users.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.newest_cas.subscribe()
    }

    /// Waits until the known users have at least this `cas`.
    pub async fn wait_for(&self, cas: u64) {
        // The sender lives in `self`, so that the wait ends only with the value.
        drop(self.newest_cas.subscribe().wait_for(|newest| *newest >= cas).await);
    }
}

/// Returns the user of a principal; `None` if the proof of its log-in was withdrawn or has
/// expired.
pub fn still_valid<'a>(
    users: &'a Users,
    identified: &LoggedInUser,
    now_unix_ms: u64,
) -> Option<&'a Arc<User>> {
    let user = users.find_user(&identified.name, identified.id)?;
    let is_valid = match identified.by {
        Proof::Password(_) => {
            identified.knows(user.secret_no)
                && user.until_unix_ms.is_none_or(|until| now_unix_ms < until)
        }
        Proof::Token(token) => {
            user.token(token).is_some_and(|token| now_unix_ms < token.until_unix_ms)
        }
        Proof::Certificate => true,
    };
    is_valid.then_some(user)
}

impl Principal {
    /// Returns the principal of a user that has proved its identity by `by`.
    pub fn user(user: &User, by: Proof, from: Option<std::net::SocketAddr>) -> Self {
        Self::User(Arc::new(LoggedInUser::new(user.id, user.name.clone(), by, from)))
    }
}
