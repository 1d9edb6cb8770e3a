//! The rights of a user, according to the newest grants that this process has received.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::env::Clock;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, LocalIndexId};
use proto::model::users::Privilege;
use proto::{Error, ErrorCode, Result};

use super::cluster::Cluster;
use super::view::{View, ViewCell};
use crate::auth::newest_users::still_valid;
use crate::flow::{DefinitionPlace, Definitions};
use crate::principal::{LoggedInUser, Principal};
use crate::quoted_name::quoted_name;

/// The privileges of which one suffices for a transaction in a bucket.
pub(super) const READ_OR_WRITE: [Privilege; 2] = [Privilege::Scan, Privilege::Write];

/// The rights of a logged-in user. A check costs a few comparisons while neither the users nor the catalog change.
pub(super) struct Rights {
    pub(super) who: Arc<LoggedInUser>,
    pub(super) cell: Arc<ViewCell>,
    pub(super) cluster: Arc<dyn Cluster>,
    pub(super) clock: Arc<dyn Clock>,
    /// The places for definitions in flight, of all users of this process.
    pub(super) definitions: Definitions,
}

impl Rights {
    /// Returns the part of the cluster that the user may see now. Returns an error if the user was
    /// dropped, or the credential of the log-in was withdrawn.
    pub(super) fn view(&self) -> Result<Arc<View>> {
        let users = self.cluster.users();
        let user = still_valid(&users, &self.who, self.clock.unix_ms()).ok_or_else(|| {
            let what = format!(
                "user {:?} was dropped, or what it logged in with is no longer valid",
                self.who.name
            );
            Error::new(ErrorCode::SessionEnded, what).with_hint("connect again")
        })?;
        Ok(self.cell.get(&self.cluster.catalog(), &users, user))
    }

    /// Returns the part of the catalog that the user may see; empty if the user was dropped.
    pub(super) fn shown(&self) -> Arc<Catalog> {
        self.view().map(|view| Arc::clone(view.shown())).unwrap_or_default()
    }

    /// Checks that the user has a privilege on all buckets.
    pub(super) fn on_all(&self, privilege: Privilege) -> Result<()> {
        match self.view()?.user.grants.all.allow(privilege) {
            true => Ok(()),
            false => Err(self.lacks(privilege, "all", "ALL")),
        }
    }

    /// Checks that the user has a privilege on a bucket. Without any privilege on the bucket, the
    /// error is that of an unknown bucket.
    pub(super) fn on(&self, privilege: Privilege, bucket: BucketId) -> Result<()> {
        self.one_of(&[privilege], bucket)
    }

    /// Checks that the user has one of some privileges on a bucket.
    pub(super) fn one_of(&self, privileges: &[Privilege], bucket: BucketId) -> Result<()> {
        let view = self.view()?;
        let own = view.on(bucket);
        if privileges.iter().any(|privilege| own.allow(*privilege)) {
            return Ok(());
        }
        if own.is_empty() {
            return Err(gone());
        }
        let named = view.shown().buckets.get(&view.user_bucket(bucket));
        let name = named.map_or_else(|| bucket.to_string(), |bucket| bucket.name.clone());
        Err(self.lacks(privileges[0], &format!("bucket {name:?}"), &quoted_name(&name)))
    }

    /// Checks that the user has a privilege on the bucket of an index. Returns the bucket.
    pub(super) fn on_index(&self, privilege: Privilege, index: LocalIndexId) -> Result<BucketId> {
        let bucket = self.cluster.catalog().local_index(index).map(|info| info.bucket);
        let bucket = bucket.ok_or_else(gone)?;
        self.on(privilege, bucket).map(|()| bucket)
    }

    /// Returns true if a transaction is the user's own: its `owner` begins with the quoted name of
    /// the principal.
    pub(super) fn is_own(&self, owner: &str) -> bool {
        let principal = Principal::User(Arc::clone(&self.who)).to_string();
        let rest = owner.strip_prefix(&principal);
        rest.is_some_and(|rest| rest.starts_with(", "))
    }

    /// Returns true if `user` is the name of the user itself.
    pub(super) fn is_self(&self, user: &str) -> bool {
        user == self.who.name
    }

    /// Records the change by which the user has set its own password. This session continues; all
    /// other sessions of the user end.
    pub(super) fn note_own_password(&self, cas: u64) {
        self.who.own_change.store(cas, Ordering::Relaxed);
    }

    /// Waits for a place among the definitions in flight.
    pub(super) async fn definition_place(&self) -> Result<DefinitionPlace> {
        self.definitions.take(self.who.id).await
    }

    fn lacks(&self, privilege: Privilege, on: &str, object: &str) -> Error {
        let name = &self.who.name;
        let what = format!("user {name:?} lacks the privilege {privilege} on {on}");
        let name = quoted_name(name);
        Error::new(ErrorCode::NotAllowed, what).with_hint(format!(
            "an administrator can give it: GRANT {privilege} ON {object} TO {name}"
        ))
    }
}

/// Returns the error for an id without an object, or for an object that the user may not know. It
/// contains no name, since the user may have guessed the id.
pub(super) fn gone() -> Error {
    Error::new(ErrorCode::Unknown, "there is no such bucket or index any more")
        .with_hint("SHOW INDEXES and SHOW BUCKETS list the names")
}
