//! Tests of the change log: single promises, the format, and random histories with crashes, faults
//! and damage.

mod golden;
mod histories;
mod history;
mod naive_model;
mod promises;
mod tamper;
