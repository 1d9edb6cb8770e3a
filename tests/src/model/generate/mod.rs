//! Generators of random documents, definitions and scans from one seed. Values come from small
//! pools with corner cases, so that documents share keys and scans find entries.

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
