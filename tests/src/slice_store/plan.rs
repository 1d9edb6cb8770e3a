//! What a history is like: how long, how many documents, and what befalls it.

/// What a history is like and what befalls it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All follows from this.
    pub seed: u64,
    /// Steps of the history.
    pub steps: usize,
    /// Documents that there are.
    pub ids: u64,
    /// Most documents that are written in one step.
    pub write_max: usize,
    /// Steps after a crash or a fault, instead of all that are left.
    pub steps_after_fault: usize,
    /// The store's memory.
    pub memory_bytes: u64,
    /// Steps between comparisons.
    pub check_every: usize,
    /// The machine goes down at this file operation.
    pub crash_at: Option<u64>,
    /// This file operation fails.
    pub fail_at: Option<u64>,
    /// The machine goes down up to so many times more while the store recovers.
    pub recovery_crashes: u32,
}

impl Plan {
    /// A small history, as most are; one in 64 has many documents and large epochs.
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
        }
    }

    /// A history to be broken at many places: shorter, and with fewer comparisons.
    pub fn workload(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0xbad);
        Self { steps: 40, ids: random.u64(2..24), write_max: 16, check_every: 10, ..Self::of(seed) }
    }

    /// One of the documents' ids: some are the beginning of others, some are long.
    pub fn id(&self, random: &mut fastrand::Rng) -> String {
        match random.u64(0..self.ids) {
            n if n % 11 == 10 => format!("{}{n}", "long-id-".repeat(12)),
            n => format!("d{n}"),
        }
    }
}
