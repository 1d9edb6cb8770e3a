//! Documents, definitions and scans at random, from one seed. Values come from small pools, so that
//! documents share keys, scans find something, and every pool has its corner cases.

mod documents;
mod indexes;
mod predicates;
mod scans;

use fastrand::Rng;

pub use documents::{document, id, spelled};
pub use indexes::index;
pub use scans::scan;

fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())].clone()
}

fn chance(rng: &mut Rng, percent: u8) -> bool {
    rng.u8(..100) < percent
}
