//! The measurements, in the order in which a run makes them.

pub mod freshness;
pub mod idle;
pub mod loading;
pub mod ranges;
pub mod whole_index;
pub mod writes;
