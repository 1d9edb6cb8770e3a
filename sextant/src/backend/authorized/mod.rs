//! Authorization: the one layer between the ports and the cluster that decides what a user may do.
//!
//! A port makes its backend by [`AuthorizedBackends`] for the principal of its connection or request. For a user this is an
//! [`Authorized`], and every call of [`Backend`] begins with a check of the user's rights, by the newest users that this process knows, not
//! at those of the log-in. So a grant that is withdrawn counts from the next call on, also in an open transaction and for the next batch
//! of a scan. A trusted principal gets the cluster itself.
//!
//! Everything is refused unless the user has a privilege for it. A bucket on which it has none does not exist for it, with its indexes:
//! the catalog that it gets lacks them ([`view`]), and a call that names one is answered by the same code in the same way as a call that
//! names nothing. A bucket on which it has some privilege, but not the needed one, is named in the refusal.
//!
//! Names are one space: CREATE reports that a name is taken, even by a bucket or an index that the user may not know.
//!
//! A command has the number of the bucket for which it is allowed, so it cannot reach another one of the same name.
//! `tests/tests/clusters/doors` runs each statement, call and page for each kind of user, and fails when one is not in
//! its tables.

mod backend;
mod checks;
mod reports;
mod rights;
#[cfg(test)]
mod tests;
mod view;
mod wrapped;

use std::sync::Arc;

use self::rights::Rights;
use self::view::Views;
use super::cluster_backend::ClusterBackend;
use crate::auth::newest_users::NewestUsers;
use crate::flow::{ClientLimits, Definitions, Flow};
use crate::principal::Principal;
use crate::sql::backend::{Backend, Backends};

/// Makes the backends of sessions and requests.
pub struct AuthorizedBackends {
    cluster: ClusterBackend,
    known: Arc<NewestUsers>,
    views: Views,
    definitions: Definitions,
}

impl AuthorizedBackends {
    /// The backends over a cluster, for the users that it knows.
    pub fn new(cluster: &ClusterBackend) -> Self {
        Self::within(cluster, &Flow::new(ClientLimits::default()))
    }

    /// The backends over a cluster, within the limits of a process.
    pub fn within(cluster: &ClusterBackend, flow: &Flow) -> Self {
        let (known, definitions) = (Arc::clone(cluster.known_users()), flow.definitions.clone());
        Self { cluster: cluster.clone(), known, views: Views::default(), definitions }
    }
}

impl Backends for AuthorizedBackends {
    fn for_principal(&self, principal: Principal) -> Arc<dyn Backend> {
        let cluster = self.cluster.with_principal(principal.clone());
        let Principal::User(who) = &principal else { return Arc::new(cluster) };
        let rights = Rights {
            cell: self.views.of(who.id),
            who: Arc::clone(who),
            known: Arc::clone(&self.known),
            cluster: cluster.clone(),
            principal,
        };
        Arc::new(Authorized { cluster, rights, definitions: self.definitions.clone() })
    }
}

/// The cluster as a user may use it.
struct Authorized {
    cluster: ClusterBackend,
    rights: Rights,
    definitions: Definitions,
}
