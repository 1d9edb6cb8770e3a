//! Rules of the sources: which crate and which module may import which, the code that is generated, the documents about
//! all of it, and the words of the comments.

mod dependency_direction;
mod families;
mod generated;
mod lanes;
mod map;
mod methods;
mod structure;
mod words;
