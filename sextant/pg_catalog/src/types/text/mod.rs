//! Values as text and from text, as PostgreSQL's input and output functions do it.

mod array;
mod number;
mod object;
mod print;
mod scan;

pub(crate) use self::number::single;
pub use self::number::{print_double, print_float, print_numeric};
pub(crate) use self::object::find_object;
pub use self::print::{print, print_number};
pub use self::scan::{parse, truncate_name};
