//! The binary.
fn main(){}
