//! What a service needs to talk to the others.

pub mod source;
