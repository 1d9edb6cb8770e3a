//! The trait, and its implementation, that create the access of each principal to the cluster.

use std::sync::Arc;

use proto::env::Clock;

use super::calls::Access;
use super::cluster::Cluster;
use super::rights::Rights;
use super::view::Views;
use crate::flow::Definitions;
use crate::principal::Principal;

/// A source of the access to the cluster, for each session or request.
pub trait AccessProvider: Send + Sync + 'static {
    /// Returns the access of a principal to the cluster.
    fn access_of(&self, principal: Principal) -> Access;
}

/// The access provider of a cluster. It checks a user's rights according to the newest users; a
/// trusted principal may do everything.
pub struct Authorization {
    cluster: Arc<dyn Cluster>,
    clock: Arc<dyn Clock>,
    views: Views,
    definitions: Definitions,
}

impl Authorization {
    /// Creates the provider of a cluster. `definitions` limits the definitions that this process
    /// sends at the same time.
    pub(crate) fn new(
        cluster: Arc<dyn Cluster>,
        clock: Arc<dyn Clock>,
        definitions: Definitions,
    ) -> Self {
        Self { cluster, clock, views: Views::default(), definitions }
    }
}

impl AccessProvider for Authorization {
    fn access_of(&self, principal: Principal) -> Access {
        let cluster = Arc::clone(&self.cluster);
        let Principal::User(who) = principal else { return Access::trusted(cluster) };
        Access::of_user(Rights {
            cell: self.views.of(who.id),
            who,
            cluster,
            clock: Arc::clone(&self.clock),
            definitions: self.definitions.clone(),
        })
    }
}
