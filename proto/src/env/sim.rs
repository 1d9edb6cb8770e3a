//! Simulated twins of the seams.
