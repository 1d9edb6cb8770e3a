//! Waits for something that a service does by itself.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Looks until something is there, for ten seconds.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let look = async {
        loop {
            match look().await {
                Some(found) => return found,
                None => sleep(Duration::from_millis(5)).await,
            }
        }
    };
    timeout(Duration::from_secs(10), look).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}
