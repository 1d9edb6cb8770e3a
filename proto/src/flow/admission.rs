//! Admission control: limits the number of concurrent jobs and their total memory. Further jobs
//! wait in order of arrival, each until its own deadline.
//!
//! A permit to run consists of two reservations: first a place among the concurrent jobs, then
//! bytes of memory. A job that waits for bytes therefore already has a place, and all later jobs
//! wait for a place. So no job overtakes another, and a large job runs when the jobs before it
//! have ended. A job that waits for another job must first release its permit; otherwise two
//! services that wait for each other's permits would deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::budget::{Budget, Reservation};
use crate::error::{Error, ErrorCode, Result};

/// The limits of an admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// The kind of jobs and their node, for messages: "shard scans on node 7".
    pub what: String,
    /// Maximum number of concurrent jobs (`scans_max`).
    pub count_max: usize,
    /// Maximum memory of all jobs, in bytes (`scan_memory_total_mb`).
    pub bytes_max: usize,
    /// The maximum memory of one job, in bytes (`scan_memory_each_mb`).
    pub bytes_each_max: usize,
}

/// The admission control of one kind of jobs; clones share it.
#[derive(Clone)]
pub struct Admission(Arc<Shared>);

struct Shared {
    limits: AdmissionLimits,
    places: Arc<Semaphore>,
    bytes: Budget,
    running: AtomicU64,
    waiting: AtomicU64,
    admitted: AtomicU64,
    refused: AtomicU64,
    held_bytes: AtomicU64,
}

/// A permit to run a job; released when it is dropped.
#[must_use = "dropping a permit gives it back"]
pub struct Permit {
    shared: Arc<Shared>,
    held_bytes: u64,
    _room: Reservation,
    _place: OwnedSemaphorePermit,
}

/// The counters of an admission control, for status and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdmissionStatus {
    /// The number of running jobs.
    pub running: u64,
    /// The limit of `running`.
    pub running_max: u64,
    /// The number of waiting jobs.
    pub waiting: u64,
    /// The number of jobs admitted since the process began.
    pub admitted: u64,
    /// The number of jobs refused since the process began: the deadline passed, or the job exceeded the limit of one
    /// job.
    pub refused: u64,
    /// Memory reserved by running jobs, in bytes.
    pub bytes: u64,
    /// The limit of `bytes`.
    pub bytes_max: u64,
}

/// A guard that counts a job as waiting until it is dropped.
struct WaitingJob<'a>(&'a Shared);

impl Drop for WaitingJob<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.running.fetch_sub(1, Ordering::Relaxed);
        self.shared.held_bytes.fetch_sub(self.held_bytes, Ordering::Relaxed);
    }
}

impl Admission {
    /// Creates an admission control with these limits.
    pub fn new(limits: AdmissionLimits) -> Self {
        Self(Arc::new(Shared {
            places: Arc::new(Semaphore::new(limits.count_max.clamp(1, Semaphore::MAX_PERMITS))),
            bytes: Budget::new(limits.bytes_max),
            limits,
            running: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            admitted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            held_bytes: AtomicU64::new(0),
        }))
    }

    /// Returns a permit if one is free now, otherwise `None`. Returns `OverLimit` if `bytes`
    /// exceeds the limit of one job.
    pub fn try_admit(&self, bytes: usize) -> Result<Option<Permit>> {
        self.check(bytes)?;
        let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else { return Ok(None) };
        let Some(room) = self.0.bytes.try_reserve(bytes) else { return Ok(None) };
        Ok(Some(self.permit(place, room, bytes)))
    }

    /// Waits for a place among the concurrent jobs and for `bytes` of memory. Returns `OverLimit`
    /// if `bytes` exceeds the limit of one job, `TooBusy` when the deadline passes.
    pub async fn admit(&self, bytes: usize, deadline: Instant) -> Result<Permit> {
        let shared = &self.0;
        if let Some(permit) = self.try_admit(bytes)? {
            return Ok(permit);
        }
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = WaitingJob(shared);
        let place = timeout_at(deadline, Arc::clone(&shared.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            let most = format!("{} run", shared.limits.count_max);
            return Err(self.too_busy_error(&most, "scans_max"));
        };
        let Ok(room) = timeout_at(deadline, shared.bytes.reserve(bytes)).await else {
            let held = format!(
                "{} KiB are wanted, and others hold {} of {} KiB",
                bytes.div_ceil(1024),
                shared.held_bytes.load(Ordering::Relaxed) / 1024,
                shared.limits.bytes_max / 1024
            );
            return Err(self.too_busy_error(&held, "scan_memory_total_mb"));
        };
        Ok(self.permit(place, room, bytes))
    }

    /// Combines the two reservations of a job into its permit, and counts the job.
    fn permit(&self, place: OwnedSemaphorePermit, room: Reservation, bytes: usize) -> Permit {
        let shared = Arc::clone(&self.0);
        shared.running.fetch_add(1, Ordering::Relaxed);
        shared.admitted.fetch_add(1, Ordering::Relaxed);
        shared.held_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Permit { shared, held_bytes: bytes as u64, _room: room, _place: place }
    }

    /// Returns an error if a job needs more memory than one job may have.
    fn check(&self, bytes: usize) -> Result<()> {
        let limits = &self.0.limits;
        if bytes <= limits.bytes_each_max {
            return Ok(());
        }
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        let message = format!(
            "{}: one needs {} KiB of memory, and may hold {} KiB",
            limits.what,
            bytes.div_ceil(1024),
            limits.bytes_each_max / 1024
        );
        Err(Error::new(ErrorCode::OverLimit, message).with_hint(
            "raise the setting scan_memory_each_mb, or spread the index over more nodes",
        ))
    }

    /// Returns the error of a job whose deadline has passed. `most` names the limit that was
    /// reached, and `setting` the setting of that limit.
    fn too_busy_error(&self, most: &str, setting: &str) -> Error {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        let message = format!("{}: {most}, and there was no room in time", self.0.limits.what);
        Error::new(ErrorCode::TooBusy, message)
            .with_hint(format!("come again later, or raise the setting {setting}"))
    }

    /// Returns true if a job waits.
    pub fn has_waiting(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// Returns the current counters.
    pub fn status(&self) -> AdmissionStatus {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AdmissionStatus {
            running: of(&self.0.running),
            running_max: self.0.limits.count_max as u64,
            waiting: of(&self.0.waiting),
            admitted: of(&self.0.admitted),
            refused: of(&self.0.refused),
            bytes: of(&self.0.held_bytes),
            bytes_max: self.0.limits.bytes_max as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn admission(count_max: usize, bytes_max: usize) -> Admission {
        let what = "scans on node 7".to_owned();
        Admission::new(AdmissionLimits { what, count_max, bytes_max, bytes_each_max: bytes_max })
    }

    fn within(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    async fn refusal(admission: &Admission, bytes: usize) -> Error {
        match admission.admit(bytes, within(20)).await {
            Ok(_) => panic!("{bytes} bytes were admitted"),
            Err(error) => error,
        }
    }

    #[tokio::test]
    async fn a_job_above_the_limit_waits_and_its_error_names_the_bound() {
        let admission = admission(2, 1 << 20);
        let first = admission.admit(1024, within(20)).await.unwrap();
        let _second = admission.admit(1024, within(20)).await.unwrap();
        let error = refusal(&admission, 1024).await;
        assert_eq!((error.code, error.code.sqlstate()), (ErrorCode::TooBusy, "53300"));
        assert!(error.is_retry(), "the same scan may be served later");
        assert!(error.hint.unwrap().contains("scans_max"));
        drop(first);
        let third = admission.admit(1024, within(20)).await;
        assert!(third.is_ok());
        let status = admission.status();
        assert_eq!((status.running, status.waiting, status.refused), (2, 0, 1));
        assert_eq!((status.admitted, status.bytes), (3, 2048));
    }

    #[tokio::test]
    async fn bytes_limit_all_jobs_together_and_each_job() {
        let admission = admission(9, 64 << 10);
        let most = admission.admit(40 << 10, within(20)).await.unwrap();
        let error = refusal(&admission, 40 << 10).await;
        assert_eq!(error.code, ErrorCode::TooBusy);
        assert!(error.hint.unwrap().contains("scan_memory_total_mb"));
        drop(most);
        let error = refusal(&admission, 65 << 10).await;
        assert_eq!(error.code, ErrorCode::OverLimit, "it never fits");
        assert!(error.hint.unwrap().contains("scan_memory_each_mb"));
        assert_eq!(admission.status().bytes, 0, "refused ones hold nothing");
    }

    #[tokio::test]
    async fn waiting_jobs_are_admitted_in_order_of_arrival() {
        let admission = admission(1, 1 << 20);
        let running = admission.admit(0, within(20)).await.unwrap();
        let order = std::sync::Mutex::new(Vec::new());
        let wait = |n: usize, bytes: usize| {
            let (admission, order) = (&admission, &order);
            async move {
                let _permit = admission.admit(bytes, within(5_000)).await.unwrap();
                order.lock().unwrap().push(n);
            }
        };
        let end = async {
            tokio::task::yield_now().await;
            assert!(admission.has_waiting());
            drop(running);
        };
        tokio::join!(wait(1, 1 << 20), wait(2, 1), wait(3, 1 << 19), end);
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
    }
}
