//! Creates the access of each principal.

use std::sync::Arc;

use proto::env::Clock;

use super::calls::Access;
use super::cluster::Cluster;
use super::rights::Rights;
use super::view::Views;
use crate::flow::Definitions;
use crate::principal::Principal;

/// Creates the access of sessions and requests.
pub trait AccessProvider: Send + Sync + 'static {
    /// Returns the access of a principal to the cluster.
    fn access_of(&self, principal: Principal) -> Access;
}

/// An access provider that checks users by the newest users of a cluster; a trusted principal may
/// do everything.
pub struct Authorization {
    cluster: Arc<dyn Cluster>,
    clock: Arc<dyn Clock>,
    views: Views,
    definitions: Definitions,
}

impl Authorization {
    /// Creates the provider of a cluster. `definitions` are the places for definitions in flight of
    /// this process.
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
