//! Rules of the sources: which crate and which module may import which, and the code that is generated.

mod dependency_direction;
mod generated;
mod lanes;
mod structure;
