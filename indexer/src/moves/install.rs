//! Installs a copied slice: makes it readable, between two epochs.

use std::sync::Arc;
use std::time::Duration;

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::Epoch;
use proto::model::index::IndexInfo;
use proto::model::moves::MovePhase;
use proto::{Error, Result};
use storage::ReceivedFiles;
use tokio::time::{Instant, timeout};

use super::incoming_move::IncomingMove;
use crate::context::NodeContext;

/// The time limit of the last round of copying, which delays the bucket's epochs.
const LAST_ROUND: Duration = Duration::from_secs(3);

impl IncomingMove {
    /// Copies the remaining changes up to the last applied epoch, and makes the slice readable
    /// from that epoch on. Returns true if the slice became readable. The caller applies no epoch
    /// meanwhile.
    pub async fn install(
        self: &Arc<Self>,
        context: &NodeContext,
        info: &Arc<IndexInfo>,
        mark: &EpochMark,
    ) -> bool {
        {
            let state = lock(&self.state);
            if state.phase != MovePhase::Copied || Instant::now() < state.not_before {
                return false;
            }
        }
        let mut received = self.received.lock().await;
        // A follower that was cancelled here may have installed the slice, or have lost the copied files.
        if self.is_slice_readable(context) {
            self.record_installed(context);
            return true;
        }
        let Some(mut mine) = received.take() else {
            self.start_copying(context);
            return false;
        };
        let round = timeout(LAST_ROUND, self.last_round(context, &mut mine, mark)).await;
        let late = |_| Err(Error::unavailable("the last round took too long"));
        if let Err(error) = round.unwrap_or_else(late) {
            // The bucket's epochs must not wait for a slow source again: copying continues beside them, from this source or
            // another one, until few changes are missing.
            *received = Some(mine);
            self.record_failure(error);
            self.start_copying(context);
            return false;
        }
        let told = mine.head().map_or(0, |head| head.entries);
        match context.store.install_slice(mine, self.slice, Arc::clone(info), mark).await {
            Ok(()) => {
                tracing::info!(slice = %self.slice, epoch = %mark.epoch, "a slice has arrived");
                self.count(context, mark.epoch, told);
                self.record_installed(context);
                true
            }
            Err(refused) => {
                *received = Some(refused.received);
                self.record_failure(refused.error);
                false
            }
        }
    }

    /// Copies the changes up to the applied epoch from the source of the earlier rounds.
    async fn last_round(
        &self,
        context: &NodeContext,
        received: &mut ReceivedFiles,
        mark: &EpochMark,
    ) -> Result<()> {
        let sources = self.sources(context)?;
        let mine = sources.iter().find(|source| source.id == received.source());
        let source =
            mine.ok_or_else(|| Error::unavailable("the source no longer has the slice"))?;
        self.run_round(context, source, received, mark.epoch, LAST_ROUND).await.map(drop)
    }

    /// Records that the slice is installed.
    fn record_installed(&self, context: &NodeContext) {
        let mut state = lock(&self.state);
        (state.phase, state.trouble) = (MovePhase::Installed, None);
        drop(state);
        self.signal_change(context);
    }

    /// Counts the slice's entries in a separate task. `told` is the number that the source
    /// reported.
    fn count(&self, context: &NodeContext, epoch: Epoch, told: u64) {
        let (context_too, slice) = (context.clone(), self.slice);
        let counting = context.env.spawn_request("count-slice", async move {
            if let Err(error) = context_too.store.count_installed(slice, epoch, told).await {
                tracing::debug!(%slice, %error, "counting a slice that has arrived");
            }
        });
        counting.detach();
    }
}
