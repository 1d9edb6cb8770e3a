//! The plan of a history: its length, its documents and its faults.

/// The plan of a history.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all random choices.
    pub seed: u64,
    /// The number of steps.
    pub steps: usize,
    /// The number of document ids.
    pub ids: u64,
    /// The maximum number of documents written in one step.
    pub write_max: usize,
    /// The number of further steps after a crash or a fault.
    pub steps_after_fault: usize,
    /// The memory limit of the store, in bytes.
    pub memory_bytes: u64,
    /// The number of steps between two comparisons.
    pub check_every: usize,
    /// The file operation at which the machine crashes; `None` for no crash.
    pub crash_at: Option<u64>,
    /// The file operation that fails; `None` for no failure.
    pub fail_at: Option<u64>,
    /// The maximum number of further crashes during the recovery.
    pub recovery_crashes: u32,
    /// True if blocking work is interleaved with the history; false if it runs at once.
    pub interleaved: bool,
    /// True if an epoch that could not be applied is applied again without reopening the store.
    pub tries_again: bool,
}

impl Plan {
    /// Returns the plan of a seed: small for most seeds; one seed in 64 has many documents and
    /// large epochs.
    pub fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let large = seed % 64 == 15;
        Self {
            seed,
            steps: 60,
            ids: if large { 400 } else { random.u64(1..24) },
            write_max: if large { 300 } else { 12 },
            steps_after_fault: 12,
            memory_bytes: [32 << 10, 128 << 10, 512 << 10][random.usize(0..3)],
            check_every: if large { 15 } else { 6 },
            crash_at: None,
            fail_at: None,
            recovery_crashes: 0,
            interleaved: false,
            tries_again: false,
        }
    }

    /// Returns the plan with blocking work that is interleaved, so that epochs, rollbacks and
    /// crashes interrupt flushes, compactions and merges.
    pub fn interleaved(self) -> Self {
        Self { interleaved: true, ..self }
    }

    /// Returns a plan for sweeps over many faults, which is shorter and has fewer comparisons.
    pub fn workload(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0xbad);
        Self { steps: 40, ids: random.u64(2..24), write_max: 16, check_every: 10, ..Self::of(seed) }
    }

    /// Returns a random document id; some ids are prefixes of others, some are long.
    pub fn id(&self, random: &mut fastrand::Rng) -> String {
        match random.u64(0..self.ids) {
            n if n % 11 == 10 => format!("{}{n}", "long-id-".repeat(12)),
            n => format!("d{n}"),
        }
    }
}
