//! The output of the figures: a table, a Markdown file and its plots.

pub mod markdown;
mod numbers;
pub mod svg;
pub mod table;
