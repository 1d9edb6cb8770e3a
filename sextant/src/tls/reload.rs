//! The reload of a running process's certificate files, so that a new certificate needs no restart.

use std::sync::Arc;
use std::time::Duration;

use proto::env::{Env, Task};
use proto::lock::lock;
use tokio::time::{Instant, sleep};

use super::settings::{Generation, TlsSettings};

/// The interval between two reads of the files.
const EVERY: Duration = Duration::from_secs(10);
/// The remaining validity of a certificate below which the process warns, in seconds.
const WARN_BEFORE_S: i64 = 30 * DAY_S;
const DAY_S: i64 = 24 * 60 * 60;
/// The minimum interval between two warnings of one kind.
const WARN_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the warning about the expiry of a certificate; `None` if it is not near.
pub(super) fn warning(not_after: i64, now_ms: u64) -> Option<String> {
    let now_s = i64::try_from(now_ms / 1000).unwrap_or(i64::MAX);
    let left = not_after.saturating_sub(now_s);
    match left {
        ..=0 => Some("the certificate of this process has expired".to_owned()),
        1..=WARN_BEFORE_S => {
            Some(format!("the certificate of this process expires in {} days", left / DAY_S))
        }
        _ => None,
    }
}

impl TlsSettings {
    /// Starts a task that reads the files repeatedly until it is dropped. New files that are
    /// complete and fit together are used; otherwise the present certificate stays in use, and a
    /// warning is logged. The task also warns about the expiry of the certificate.
    pub fn follow(self: &Arc<Self>, env: &Env) -> Task {
        let settings = Arc::clone(self);
        env.spawn_service("certificates", async move {
            let mut warned = None::<Instant>;
            loop {
                let end = warning(settings.generation().not_after, settings.env.clock.unix_ms());
                if let Some(warning) = end
                    && warned.is_none_or(|at| at.elapsed() >= WARN_EVERY)
                {
                    warned = Some(Instant::now());
                    tracing::warn!("{warning}; put a new one in its place: sextant cert node");
                }
                sleep(EVERY).await;
                if settings.look().await {
                    warned = None;
                }
            }
        })
    }

    /// Reads the files once; true if a new certificate is now used.
    pub(super) async fn look(&self) -> bool {
        let Some(files) = &self.files else { return false };
        let read = files.read(&self.env).await.map_err(|error| error.message);
        if lock(&self.seen).as_ref() == Some(&read) {
            return false;
        }
        let taken = match &read {
            Err(error) => Err(error.clone()),
            Ok(pem) => Generation::from_pem(&self.env, pem)
                .map_err(|error| files.named(error).message)
                .and_then(|generation| self.take(generation)),
        };
        *lock(&self.seen) = Some(read);
        if let Err(error) = &taken {
            tracing::warn!("the new certificate is not used, the present one stays: {error}");
        }
        taken.is_ok()
    }

    fn take(&self, generation: Generation) -> Result<(), String> {
        let own = self.identity();
        if generation.identity != own {
            return Err(format!("this process is {own}, the file is of {}", generation.identity));
        }
        self.generation.store(Arc::new(generation));
        Ok(())
    }
}
