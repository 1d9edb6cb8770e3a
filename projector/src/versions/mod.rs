//! The versions of data sets.
#![allow(dead_code)]

mod files;
