//! Tests rules of the sources: the imports of crates and modules, generated code, documents about
//! the sources, and the words of comments.

mod dependency_direction;
mod families;
mod generated;
mod lanes;
mod map;
mod methods;
mod structure;
mod words;
