//! Single promises of the table, each by itself.
use super::*;
