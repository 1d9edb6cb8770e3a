//! Pace of compactions: slow enough to leave processor and disk to epochs, flushes and scans, and
//! fast enough that fragments do not pile up.
//!
//! Each write of a compaction takes tokens from a bucket. The refill rate doubles with every
//! [`DOUBLING_FRAGMENTS`] excess fragments in the longest list of the index. From
//! [`UNLIMITED_FRAGMENTS`] on there is no limit. So the list stops growing at the latest when
//! merges run at full speed, however fast fragments are written. While the list is short, a
//! compaction also waits for flushes in progress.
//!
//! The wall clock may jump. A jump forward fills the bucket once; a jump back costs the tokens of
//! one step.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proto::Result;
use proto::env::Env;
use proto::lock::lock;

use crate::files::group_writer::GroupWriter;
use crate::merge_policy::FRAGMENTS_MIN;
use crate::rows::row::RowVersion;
use crate::rows::sinks::RowSink;

/// Number of excess fragments that doubles the rate. The number is small because each excess
/// fragment costs every short scan a seek.
const DOUBLING_FRAGMENTS: usize = 1;
/// Number of fragments above which the rate is unlimited.
const UNLIMITED_FRAGMENTS: usize = FRAGMENTS_MIN + 4 * DOUBLING_FRAGMENTS;
/// Number of fragments below which a compaction yields to flushes.
const YIELD_FRAGMENTS: usize = FRAGMENTS_MIN + 2 * DOUBLING_FRAGMENTS;
/// The token bucket's capacity, as a divisor of the tokens of one second.
const BURST_PARTS: u64 = 8;
/// Bytes between two pauses: few enough that a compaction never occupies the disk for long.
const STEP_BYTES: u64 = 256 << 10;
/// The number of rows between two checks of the bytes written.
const STEP_ROWS: u32 = 256;
/// Longest single pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Length of one pause in favour of a flush; the next constant is the largest number of such
/// pauses after a write.
const YIELD: Duration = Duration::from_millis(2);
const YIELDS_MAX: usize = 50;

/// The limiter of the write rate of compactions.
pub struct Pacer {
    env: Env,
    bytes_per_s: u64,
    bucket: Mutex<TokenBucket>,
    flushes: AtomicUsize,
}

impl Pacer {
    /// Creates a limiter that allows `bytes_per_s` while lists are short.
    pub fn new(env: &Env, bytes_per_s: u64) -> Self {
        let at_ms = env.clock.unix_ms();
        Self {
            env: env.clone(),
            bytes_per_s: bytes_per_s.max(1),
            bucket: Mutex::new(TokenBucket { tokens: 0, at_ms }),
            flushes: AtomicUsize::new(0),
        }
    }

    /// Counts a flush as in progress until the guard is dropped; compactions pause meanwhile.
    pub fn begin_flush(&self) -> FlushGuard<'_> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        FlushGuard(self)
    }

    /// Pauses after a write of `bytes`, so that the rate is respected and flushes have priority.
    /// `fragments` is the length of the index's longest list.
    fn pause_after_write(&self, bytes: u64, fragments: usize) {
        let Some(rate) = rate(self.bytes_per_s, fragments) else { return };
        let wait = lock(&self.bucket).spend(self.env.clock.unix_ms(), bytes, rate);
        if !wait.is_zero() {
            self.env.spawner.pause(wait.min(PAUSE_MAX));
        }
        for _ in 0..YIELDS_MAX {
            if fragments >= YIELD_FRAGMENTS || self.flushes.load(Ordering::Relaxed) == 0 {
                break;
            }
            self.env.spawner.pause(YIELD);
        }
    }
}

/// A guard that counts a flush as in progress.
pub struct FlushGuard<'a>(&'a Pacer);

impl Drop for FlushGuard<'_> {
    fn drop(&mut self) {
        self.0.flushes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the allowed rate in bytes per second; `None` if there is no limit. `fragments` is the
/// length of the index's longest list.
fn rate(bytes_per_s: u64, fragments: usize) -> Option<u64> {
    let doublings = fragments.saturating_sub(FRAGMENTS_MIN) / DOUBLING_FRAGMENTS;
    (fragments < UNLIMITED_FRAGMENTS).then(|| bytes_per_s << doublings)
}

/// A token bucket: `tokens` is the number of bytes that may be written at once. A negative number
/// is a debt of bytes that were written too early.
#[derive(Debug)]
struct TokenBucket {
    tokens: i64,
    at_ms: u64,
}

impl TokenBucket {
    /// Takes `bytes` tokens out of the bucket and returns the wait until the debt is paid.
    fn spend(&mut self, now_ms: u64, bytes: u64, rate: u64) -> Duration {
        let passed_ms = now_ms.saturating_sub(self.at_ms);
        self.at_ms = now_ms;
        let came = u128::from(rate) * u128::from(passed_ms) / 1000;
        let burst = (rate / BURST_PARTS) as i64;
        let came = i64::try_from(came).unwrap_or(i64::MAX);
        self.tokens = self.tokens.saturating_add(came).min(burst).saturating_sub(bytes as i64);
        let debt = u128::from(self.tokens.min(0).unsigned_abs());
        Duration::from_millis((debt * 1000 / u128::from(rate)) as u64)
    }
}

/// Row sink that writes to fragments and pauses, so that a compaction keeps to its write rate.
pub struct PacedSink<'a, F> {
    out: &'a mut GroupWriter,
    pacer: &'a Pacer,
    /// Returns the length of the index's longest list.
    fragments: F,
    rows: u32,
    bytes: u64,
}

impl<'a, F: Fn() -> usize> PacedSink<'a, F> {
    /// Creates a sink that writes to `out`.
    pub fn new(out: &'a mut GroupWriter, pacer: &'a Pacer, fragments: F) -> Self {
        let bytes = out.bytes();
        Self { out, pacer, fragments, rows: 0, bytes }
    }
}

impl<F: Fn() -> usize> RowSink for PacedSink<'_, F> {
    #[inline]
    fn push(&mut self, row: &RowVersion<'_>) -> Result<()> {
        self.out.push(row)?;
        self.rows += 1;
        if self.rows == STEP_ROWS {
            self.rows = 0;
            let written = self.out.bytes() - self.bytes;
            if written >= STEP_BYTES {
                self.bytes += written;
                self.pacer.pause_after_write(written, (self.fragments)());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::env::sim::{InlineSpawner, SimClock, world};
    use proto::env::{BoxFuture, Spawner, Task};

    use super::*;

    const MB: u64 = 1 << 20;

    /// A simulated flush: the number of pauses that it lasts, and the action at its end.
    type Flush = (usize, Box<dyn FnOnce() + Send>);

    /// A spawner whose pauses advance the clock. A flush lasts for a number of pauses.
    struct Pauses {
        clock: Arc<SimClock>,
        flush: Mutex<Option<Flush>>,
    }

    impl Spawner for Pauses {
        fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
            InlineSpawner.spawn(name, future)
        }

        fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
            work();
        }

        fn pause(&self, time: Duration) {
            self.clock.advance(time.as_millis() as u64);
            let mut flush = lock(&self.flush);
            match flush.take() {
                Some((0, end)) => end(),
                Some((left, end)) => *flush = Some((left - 1, end)),
                None => {}
            }
        }
    }

    fn paced() -> (Arc<Pacer>, Arc<Pauses>) {
        let (env, clock, _) = world(1);
        let pauses = Arc::new(Pauses { clock, flush: Mutex::default() });
        let env = Env { spawner: pauses.clone(), ..env };
        (Arc::new(Pacer::new(&env, 64 * MB)), pauses)
    }

    /// Seconds that it takes to write some bytes.
    fn seconds(bytes: u64, fragments: usize) -> f64 {
        let (pacer, pauses) = paced();
        let begin = proto::env::Clock::unix_ms(&*pauses.clock);
        (0..bytes / STEP_BYTES).for_each(|_| pacer.pause_after_write(STEP_BYTES, fragments));
        (proto::env::Clock::unix_ms(&*pauses.clock) - begin) as f64 / 1000.0
    }

    #[test]
    fn a_compaction_writes_no_faster_than_it_may() {
        let time = seconds(640 * MB, FRAGMENTS_MIN);
        assert!((9.5..10.5).contains(&time), "640 MB in {time} s");
    }

    #[test]
    fn the_allowed_rate_grows_with_the_fragments_up_to_no_limit() {
        let times: Vec<f64> = (0..40).map(|fragments| seconds(256 * MB, fragments)).collect();
        assert!(times.is_sorted_by(|less, more| less >= more), "{times:?}");
        assert!(times[FRAGMENTS_MIN + DOUBLING_FRAGMENTS] < 0.6 * times[FRAGMENTS_MIN]);
        assert!(times[UNLIMITED_FRAGMENTS..].iter().all(|time| *time == 0.0), "{times:?}");
    }

    #[test]
    fn a_compaction_gives_way_to_a_flush_while_fragments_are_few() {
        for (fragments, gives_way) in [(FRAGMENTS_MIN, true), (YIELD_FRAGMENTS, false)] {
            let (pacer, pauses) = paced();
            let ended = Arc::clone(&pacer);
            std::mem::forget(pacer.begin_flush());
            let end = move || drop(FlushGuard(&ended));
            *lock(&pauses.flush) = Some((7, Box::new(end)));
            pauses.clock.advance(1000);
            let begin = proto::env::Clock::unix_ms(&*pauses.clock);
            pacer.pause_after_write(STEP_BYTES, fragments);
            let waited = proto::env::Clock::unix_ms(&*pauses.clock) - begin;
            assert_eq!(waited, if gives_way { 8 * YIELD.as_millis() as u64 } else { 0 });
        }
    }

    #[test]
    fn clock_jumps_keep_the_pace() {
        let mut bucket = TokenBucket { tokens: 0, at_ms: 1_000_000 };
        let rate = 64 * MB;
        assert!(bucket.spend(1_000_100, rate, rate) < Duration::from_secs(1));
        let after = bucket.spend(5, MB, rate);
        assert!(after < Duration::from_secs(2), "a jump back: {after:?}");
        bucket.spend(u64::MAX, MB, rate);
        assert!(!bucket.spend(u64::MAX, rate, rate).is_zero(), "a jump forth fills it once");
    }
}
