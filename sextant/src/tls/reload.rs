//! Reloads the certificate files of a running process, so that a new certificate needs no
//! restart.

use std::sync::Arc;
use std::time::Duration;

use proto::env::{Env, Task};
use proto::lock::lock;
use tokio::time::{Instant, sleep};

use super::settings::{CertificateSet, TlsSettings};

/// The interval between two reads of the files.
const EVERY: Duration = Duration::from_secs(10);
/// The remaining validity of a certificate, in seconds, below which the process logs a warning.
const WARN_BEFORE_S: i64 = 30 * DAY_S;
const DAY_S: i64 = 24 * 60 * 60;
/// The minimum interval between two warnings of the same kind.
const WARN_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns a warning about the expiry of a certificate; `None` if the expiry is far away.
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
    /// Starts a task that reads the files repeatedly until the task is dropped. New files are
    /// used if they are complete and belong together. Otherwise the present certificate stays in
    /// use, and a warning is logged. The task also warns before the certificate expires.
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
                if settings.reload().await {
                    warned = None;
                }
            }
        })
    }

    /// Reads the files once. Returns true if the process now uses a new certificate.
    pub(super) async fn reload(&self) -> bool {
        let Some(files) = &self.files else { return false };
        let read = files.read(&self.env).await.map_err(|error| error.message);
        if lock(&self.seen).as_ref() == Some(&read) {
            return false;
        }
        let taken = match &read {
            Err(error) => Err(error.clone()),
            Ok(pem) => CertificateSet::from_pem(&self.env, pem)
                .map_err(|error| files.with_file_names(error).message)
                .and_then(|generation| self.use_generation(generation)),
        };
        *lock(&self.seen) = Some(read);
        if let Err(error) = &taken {
            tracing::warn!("the new certificate is not used, the present one stays: {error}");
        }
        taken.is_ok()
    }

    /// Replaces the certificate in use, unless the new one has another holder.
    fn use_generation(&self, generation: CertificateSet) -> Result<(), String> {
        let own = self.identity();
        if generation.identity != own {
            return Err(format!("this process is {own}, the file is of {}", generation.identity));
        }
        self.generation.store(Arc::new(generation));
        Ok(())
    }
}
