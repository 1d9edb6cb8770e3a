//! The fixed part of PostgreSQL's catalogue, read once from the files of the folder `data`: types,
//! casts, operators, functions, and the columns of the relations.

mod look_up;
mod tables;

pub use self::look_up::data;
pub use self::tables::{CastRow, Column, Data, FunctionRow, OperatorRow, RelationRow, TypeRow};
