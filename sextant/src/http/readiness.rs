//! The cached answer of `/readyz`. Any client may send this request. The answer is cached for a
//! short time, and only one request at a time computes it, so that unknown clients cannot
//! overload the coordinators.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The time for which an answer is cached.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// The cached answer of `/readyz`. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Readiness(Arc<Mutex<Option<CachedReason>>>);

/// The answer, with the time at which it was computed.
struct CachedReason {
    at: Instant,
    /// The reason why statements cannot succeed; `None` if they can.
    reason: Option<String>,
}

impl Readiness {
    /// Returns the cached answer if it is new enough. Otherwise computes a new answer.
    pub(super) async fn get(
        &self,
        find_out: impl Future<Output = Option<String>>,
    ) -> Option<String> {
        let mut kept = self.0.lock().await;
        if let Some(kept) = &*kept
            && kept.at.elapsed() < KEPT_FOR
        {
            return kept.reason.clone();
        }
        let reason = find_out.await;
        *kept = Some(CachedReason { at: Instant::now(), reason: reason.clone() });
        reason
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readiness_is_asked_once_a_second() {
        let (readiness, asked) = (Readiness::default(), AtomicU32::new(0));
        let ask = || {
            readiness.get(async {
                let no = asked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some(format!("reason {no}"))
            })
        };
        let (first, second) = tokio::join!(ask(), ask());
        assert_eq!((first.as_deref(), second.as_deref()), (Some("reason 0"), Some("reason 0")));
        tokio::time::sleep(KEPT_FOR).await;
        assert_eq!(ask().await.as_deref(), Some("reason 1"));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}
