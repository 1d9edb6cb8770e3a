//! The replacement of the stored catalog by a coordinator's catalog.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::keeper::RouterData;
use crate::context::RouterContext;
use crate::epochs::applied_epochs::EpochFloors;

/// The time for which the coordinators must send an older catalog than the stored one before it is
/// accepted. A new leader, or a member that lags, would have caught up with the stored catalog by
/// then.
const OLDER_FOR: Duration = Duration::from_secs(10);

/// The state of the decision whether a coordinator's catalog replaces the stored catalog.
#[derive(Default)]
pub(crate) struct CatalogTakeOver {
    /// The time at which the first older catalog arrived.
    older_since: Option<Instant>,
}

impl CatalogTakeOver {
    /// Restores the state that an earlier process has stored, if there is one. Returns its
    /// catalog, which the caller must make the current one.
    pub fn restore_stored(context: &RouterContext, data: &RouterData) -> Option<Arc<Catalog>> {
        let kept = data.take_stored()?;
        context.heard.begin_from_disk(kept.heard_unix_ms);
        context.moment.store(kept.moment, Ordering::Relaxed);
        context.applied.set_floors(kept.floors);
        let (cas, age_ms) = (kept.catalog.cas, context.heard.knowledge(&*context.env.clock).age_ms);
        tracing::info!(cas, ?age_ms, "serving by the kept catalog until a coordinator answers");
        Some(kept.catalog)
    }

    /// Returns an error if a coordinator's catalog must not replace the present one.
    pub async fn check(&mut self, context: &RouterContext, catalog: &Catalog) -> Result<()> {
        if !context.heard.is_from_disk() {
            return Ok(());
        }
        let kept = context.catalog.load_full();
        match (kept.cluster, catalog.cluster) {
            (own, theirs) if own == theirs => {}
            (_, None) => return Err(Error::unavailable("the coordinators have no cluster yet")),
            (_, Some(theirs)) => {
                let what = format!("the kept catalog is not of the coordinators' cluster {theirs}");
                return Err(Error::new(ErrorCode::OtherCluster, what));
            }
        }
        if catalog.cas >= kept.cas {
            return Ok(());
        }
        let since = *self.older_since.get_or_insert_with(Instant::now);
        if since.elapsed() < OLDER_FOR || leaders_cas(context).await? >= kept.cas {
            return Err(Error::unavailable("a coordinator has an older catalog than the kept one"));
        }
        tracing::warn!(
            kept = kept.cas,
            cas = catalog.cas,
            "the coordinators have an older catalog than the kept one, which they replace: were they restored from an older copy?"
        );
        Ok(())
    }

    /// Records that a coordinator's catalog is now the current one, so that the stored state is no
    /// longer in use.
    pub fn note_replaced(&mut self, context: &RouterContext) {
        if context.heard.is_from_disk() {
            // From this catalog the router knows of rollbacks.
            context.applied.set_floors(EpochFloors::new());
        }
        context.heard.note_catalog();
    }
}

/// Returns the number of the newest catalog change of the coordinators' leader.
async fn leaders_cas(context: &RouterContext) -> Result<u64> {
    let no_leader = || Error::unavailable("no coordinator leads");
    let leader = context.directory.coordinator().status().await?.leader.ok_or_else(no_leader)?;
    let status = context.directory.coordinator_member(leader)?.status().await?;
    if status.leader != Some(leader) {
        return Err(no_leader());
    }
    Ok(status.catalog_cas)
}

#[cfg(test)]
#[path = "take_over_tests.rs"]
mod tests;
