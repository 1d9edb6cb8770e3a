//! New generations of the indexes, with another number of slices, during writes, scans, moves,
//! drops and faults.
//!
//! The readers check that a scan of any generation returns the entries of its epoch, that a session
//! never reads an older epoch than before, and that a transaction or a page continues in the
//! generation in which it began.

use std::sync::Arc;
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::ids::LocalIndexId;
use proto::model::index::{IndexSpec, IndexState};
use proto::rpc::command::{BuildGeneration, Outcome, Proposal};
use tokio::time::{Instant, sleep, timeout};

use crate::sim::client::session::Session;
use crate::sim::client::workload::STATEMENT;
use crate::sim::data_sets;
use crate::sim::judge::oracle::INDEXES;
use crate::sim::{Shared, violation};

/// The time for which a build is observed. Another build may begin after it.
const WATCHED: Duration = Duration::from_secs(4);
/// The time limit after the faults until all builds must end.
const ALL_BUILT: Duration = Duration::from_secs(60);

/// True if indexes get new generations in the run of this seed.
pub(in crate::sim) fn are_chosen(seed: u64) -> bool {
    // The declaration of an altered index names its number of slices.
    seed % 3 == 2 && !data_sets::are_chosen(seed)
}

/// Starts one generation after another until the future is dropped.
pub(in crate::sim) async fn run(seed: u64, session: Session, summary: Shared) {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x6e6e);
    loop {
        sleep(Duration::from_millis(random.u64(200..2_000))).await;
        let index = &INDEXES[random.usize(..INDEXES.len())];
        let Some(info) = session.router.catalog().index(index.name).cloned() else { continue };
        let spec = IndexSpec { slices: random.u16(1..6), ..(*info.spec).clone() };
        let command = BuildGeneration { index: info.id, spec: Box::new(spec) };
        let proposal = Proposal::from(command).expecting_unchanged([&*info]);
        let begun = timeout(STATEMENT, session.backend.command(proposal)).await;
        let Ok(Ok(Outcome::Generation(id))) = begun else { continue };
        let decided = |catalog: &Catalog| !is_built(catalog, id);
        if let Ok(catalog) = timeout(WATCHED, session.router.wait_catalog(decided)).await
            && catalog.local_index(id).is_some()
        {
            summary.lock().expect("not poisoned").generations += 1;
        }
    }
}

/// True while a generation may still become the serving one.
fn is_built(catalog: &Catalog, id: LocalIndexId) -> bool {
    match catalog.local_index(id) {
        Some(info) => !info.state.is_readable(),
        None => !catalog.is_generation_dropped(id),
    }
}

/// Waits after the faults until no index is being built.
pub(in crate::sim) async fn settle(session: &Session, summary: &Shared) {
    let deadline = Instant::now() + ALL_BUILT;
    loop {
        let catalog: Arc<Catalog> = session.router.catalog();
        let built = catalog.generations.values().find(|info| info.state == IndexState::Backfill);
        let Some(info) = built else { return };
        if Instant::now() > deadline {
            let what = format!(
                "generation {} is not complete {ALL_BUILT:?} after the faults",
                info.local_id()
            );
            return violation(summary, what);
        }
        sleep(Duration::from_millis(200)).await;
    }
}
