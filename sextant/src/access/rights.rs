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

/// The privileges of which one is enough for a transaction in a bucket.
pub(super) const READ_OR_WRITE: [Privilege; 2] = [Privilege::Scan, Privilege::Write];

/// The rights of a logged-in user. They are cached: while neither the users nor the catalog
/// change, a check costs only a few comparisons.
pub(super) struct Rights {
    pub(super) who: Arc<LoggedInUser>,
    pub(super) cell: Arc<ViewCell>,
    pub(super) cluster: Arc<dyn Cluster>,
    pub(super) clock: Arc<dyn Clock>,
    /// The limit of definitions that all users of this process send at the same time.
    pub(super) definitions: Definitions,
}

impl Rights {
    /// Returns the part of the cluster that the user may see at present. Returns an error if the
    /// user was dropped, or if the credential of the log-in was withdrawn.
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

    /// Returns the part of the catalog that the user may see; an empty catalog if the user was
    /// dropped.
    pub(super) fn visible_catalog(&self) -> Arc<Catalog> {
        self.view().map(|view| Arc::clone(view.visible_catalog())).unwrap_or_default()
    }

    /// Returns an error unless the user has a privilege on all buckets.
    pub(super) fn check_on_all(&self, privilege: Privilege) -> Result<()> {
        match self.view()?.user.grants.all.allow(privilege) {
            true => Ok(()),
            false => Err(self.missing_privilege_error(privilege, "all", "ALL")),
        }
    }

    /// Returns an error unless the user has a privilege on a bucket. If the user has no privilege
    /// at all on the bucket, the error says that the bucket is unknown.
    pub(super) fn check_on(&self, privilege: Privilege, bucket: BucketId) -> Result<()> {
        self.check_any_on(&[privilege], bucket)
    }

    /// Returns an error unless the user has at least one of `privileges` on a bucket.
    pub(super) fn check_any_on(&self, privileges: &[Privilege], bucket: BucketId) -> Result<()> {
        let view = self.view()?;
        let own = view.privileges_on(bucket);
        if privileges.iter().any(|privilege| own.allow(*privilege)) {
            return Ok(());
        }
        if own.is_empty() {
            return Err(unknown_object_error());
        }
        let named = view.visible_catalog().buckets.get(&view.user_bucket(bucket));
        let name = named.map_or_else(|| bucket.to_string(), |bucket| bucket.name.clone());
        Err(self.missing_privilege_error(
            privileges[0],
            &format!("bucket {name:?}"),
            &quoted_name(&name),
        ))
    }

    /// Returns the bucket of an index, or an error unless the user has a privilege on this
    /// bucket.
    pub(super) fn check_on_index(
        &self,
        privilege: Privilege,
        index: LocalIndexId,
    ) -> Result<BucketId> {
        let bucket = self.cluster.catalog().local_index(index).map(|info| info.bucket);
        let bucket = bucket.ok_or_else(unknown_object_error)?;
        self.check_on(privilege, bucket).map(|()| bucket)
    }

    /// Returns true if a transaction belongs to the user. `owner` is the transaction's owner
    /// text, which begins with the quoted name of the principal.
    pub(super) fn is_own_transaction(&self, owner: &str) -> bool {
        let principal = Principal::User(Arc::clone(&self.who)).to_string();
        let rest = owner.strip_prefix(&principal);
        rest.is_some_and(|rest| rest.starts_with(", "))
    }

    /// Returns true if `user` is the name of the user itself.
    pub(super) fn is_self(&self, user: &str) -> bool {
        user == self.who.name
    }

    /// Records the `cas` of the change by which the user has set its own password. The present
    /// session therefore continues, while all other sessions of the user end.
    pub(super) fn note_own_password(&self, cas: u64) {
        self.who.own_change.store(cas, Ordering::Relaxed);
    }

    /// Waits until the user may send one more definition, within the limits of this process.
    pub(super) async fn wait_definition_place(&self) -> Result<DefinitionPlace> {
        self.definitions.take(self.who.id).await
    }

    /// Returns the error for a missing privilege, with the GRANT statement that would give it.
    fn missing_privilege_error(&self, privilege: Privilege, on: &str, object: &str) -> Error {
        let name = &self.who.name;
        let what = format!("user {name:?} lacks the privilege {privilege} on {on}");
        let name = quoted_name(name);
        Error::new(ErrorCode::NotAllowed, what).with_hint(format!(
            "an administrator can give it: GRANT {privilege} ON {object} TO {name}"
        ))
    }
}

/// Returns the error for an id of an object that does not exist, or that the user may not know.
/// The error contains no name, since the user may have guessed the id.
pub(super) fn unknown_object_error() -> Error {
    Error::new(ErrorCode::Unknown, "there is no such bucket or index any more")
        .with_hint("SHOW INDEXES and SHOW BUCKETS list the names")
}
