//! The number and the length of the pauses in a simulated blocking job, which are random.

use std::time::Duration;

/// The longest pause, in simulated milliseconds, of work that is not slow.
const SHORT_MS_MAX: u64 = 2;
/// The largest number of pauses of one blocking job.
const PAUSES_MAX: u8 = 8;

/// The probabilities in a simulation that work is interrupted, and that interrupted work is slow.
#[derive(Clone, Copy, Debug)]
pub struct PaceOdds {
    /// One in this number of blocking jobs runs without interruption, so that the cost of a run
    /// is bounded.
    pub whole_one_in: u8,
    /// One in this number of interrupted blocking jobs is slow: its pauses may be long.
    pub slow_one_in: u8,
    /// The longest pause of slow work, in milliseconds.
    pub slow_ms_max: u64,
}

/// The pauses of one blocking job, drawn from the seed.
pub(super) struct RateLimiter {
    /// At one in this number of yield points, the work pauses.
    pauses_one_in: u8,
    /// The number of pauses that may still follow.
    pauses_left: u8,
    /// The longest pause, in milliseconds.
    ms_max: u64,
}

impl PaceOdds {
    /// Draws the pauses of a blocking job; `None` for work that runs without interruption.
    pub(super) fn draw(&self, random: &mut fastrand::Rng) -> Option<RateLimiter> {
        if random.u8(0..self.whole_one_in) == 0 {
            return None;
        }
        let is_slow = random.u8(0..self.slow_one_in) == 0;
        // Work with many yield points is interrupted in its midst only if pauses are rare.
        let pauses_one_in = [2, 6, 20, 60][random.usize(0..4)];
        let ms_max = if is_slow { self.slow_ms_max } else { SHORT_MS_MAX };
        Some(RateLimiter { pauses_one_in, pauses_left: random.u8(1..=PAUSES_MAX), ms_max })
    }
}

impl RateLimiter {
    /// Draws the simulated time before the first step.
    pub fn first_wait(&self, random: &mut fastrand::Rng) -> Duration {
        self.time(random)
    }

    /// Draws whether a yield point is a pause; returns the simulated length of the pause, or
    /// `None`.
    pub fn pause(&mut self, random: &mut fastrand::Rng) -> Option<Duration> {
        if self.pauses_left == 0 || random.u8(0..self.pauses_one_in) > 0 {
            return None;
        }
        self.pauses_left -= 1;
        Some(self.time(random))
    }

    /// Draws the length of a pause in simulated time. Mostly zero: then only tasks that are ready
    /// run meanwhile.
    fn time(&self, random: &mut fastrand::Rng) -> Duration {
        Duration::from_millis(match random.u8(0..4) {
            0..2 => 0,
            2 => random.u64(0..=SHORT_MS_MAX),
            _ => random.u64(0..=self.ms_max),
        })
    }
}
