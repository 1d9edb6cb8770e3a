//! The number and length of interruptions of a piece of blocking work.

use std::time::Duration;

/// The longest pause, in simulated milliseconds, of work that is not slow.
const SHORT_MS_MAX: u64 = 2;
/// The largest number of pauses of one piece of work.
const PAUSES_MAX: u8 = 8;

/// The shares of interrupted and of slow work in a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Paces {
    /// One in this number of pieces of work runs without interruption, so that the cost of a run is
    /// bounded.
    pub whole_one_in: u8,
    /// One in this number of interrupted pieces of work is slow.
    pub slow_one_in: u8,
    /// The longest pause of slow work, in milliseconds.
    pub slow_ms_max: u64,
}

/// The pace of one piece of work, drawn from the seed.
pub(super) struct Pace {
    /// One in this number of yield points is a pause.
    pauses_one_in: u8,
    /// The number of pauses left.
    pauses_left: u8,
    /// The longest pause, in milliseconds.
    ms_max: u64,
}

impl Paces {
    /// Draws the pace of a piece of work; `None` for work that runs without interruption.
    pub(super) fn draw(&self, random: &mut fastrand::Rng) -> Option<Pace> {
        if random.u8(0..self.whole_one_in) == 0 {
            return None;
        }
        let is_slow = random.u8(0..self.slow_one_in) == 0;
        // Work with many yield points is interrupted in its midst only if pauses are rare.
        let pauses_one_in = [2, 6, 20, 60][random.usize(0..4)];
        let ms_max = if is_slow { self.slow_ms_max } else { SHORT_MS_MAX };
        Some(Pace { pauses_one_in, pauses_left: random.u8(1..=PAUSES_MAX), ms_max })
    }
}

impl Pace {
    /// The simulated time before the first step.
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

    /// Draws the length of a pause, which is mostly zero: then only tasks that are ready run in
    /// between.
    fn time(&self, random: &mut fastrand::Rng) -> Duration {
        Duration::from_millis(match random.u8(0..4) {
            0..2 => 0,
            2 => random.u64(0..=SHORT_MS_MAX),
            _ => random.u64(0..=self.ms_max),
        })
    }
}
