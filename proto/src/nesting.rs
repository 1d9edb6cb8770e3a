//! Limits the nesting of decoded trees. A decoder recurses, and a stack overflow aborts the process, so that a client could
//! stop a node with a few kilobytes. Recursive types therefore count their levels while they are decoded.
//!
//! A recursive type derives its code with `#[serde(remote = "Self")]`, which generates inherent functions, and implements
//! the serde traits with `recursive!`, which counts a level around each call. The type's fields are decoded through the
//! traits, and so pass the count.

use std::cell::Cell;
use std::thread::LocalKey;

/// Maximum nesting of a decoded tree: more than the longest statement needs (500 operators in 200 parentheses), and few
/// enough for a thread's stack in a debug build.
pub const LEVELS_MAX: usize = 768;

/// Maximum nesting of commands: twice as many as a leader puts around one. They have a count of their own, since a command takes far more of
/// the stack than an expression.
pub const COMMANDS_MAX: usize = 8;

thread_local! {
    static LEVELS: Cell<usize> = const { Cell::new(0) };
    static COMMANDS: Cell<usize> = const { Cell::new(0) };
}

/// One level of nesting while it is decoded.
pub(crate) struct Level(&'static LocalKey<Cell<usize>>);

impl Level {
    /// Enters a level of values and expressions; `None` if that is too deep.
    pub fn enter() -> Option<Self> {
        Self::deeper(&LEVELS, LEVELS_MAX)
    }

    /// Enters a command; `None` if that is too deep.
    pub fn enter_command() -> Option<Self> {
        Self::deeper(&COMMANDS, COMMANDS_MAX)
    }

    fn deeper(count: &'static LocalKey<Cell<usize>>, max: usize) -> Option<Self> {
        let deeper = count.get() + 1;
        (deeper <= max).then(|| {
            count.set(deeper);
            Self(count)
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Implements `Serialize` and `Deserialize` for a type whose code is derived with `remote = "Self"`. The second argument enters a level.
macro_rules! recursive {
    ($type:ty) => {
        recursive!($type, enter);
    };
    ($type:ty, $enter:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(
                &self,
                to: S,
            ) -> std::result::Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(
                from: D,
            ) -> std::result::Result<Self, D::Error> {
                let _level = crate::nesting::Level::$enter()
                    .ok_or_else(|| serde::de::Error::custom("it is nested too deep"))?;
                Self::deserialize(from)
            }
        }
    };
}
pub(crate) use recursive;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::rpc::command::Command;
    use crate::value::Value;

    /// So many negations of a constant.
    fn negations(levels: usize) -> Vec<u8> {
        let not = postcard::to_stdvec(&Expr::Not(Box::new(Expr::DocumentId))).unwrap()[0];
        let mut bytes = vec![not; levels];
        bytes.extend(postcard::to_stdvec(&Expr::DocumentId).unwrap());
        bytes
    }

    #[test]
    fn commands_around_commands_are_bounded() {
        let around = |levels: usize| {
            let innermost = Command::CancelMoves { index: None };
            (0..levels).fold(innermost, |command, _| Command::Avoiding {
                silent: Vec::new(),
                command: Box::new(command),
            })
        };
        let read = |bytes: &[u8]| postcard::from_bytes::<Command>(bytes);
        let deepest = around(COMMANDS_MAX - 1);
        let bytes = postcard::to_stdvec(&deepest).unwrap();
        assert_eq!(read(&bytes), Ok(deepest.clone()));
        let layer = bytes.len() / COMMANDS_MAX;
        assert!(read(&postcard::to_stdvec(&around(COMMANDS_MAX)).unwrap()).is_err());
        assert!(read(&bytes[..layer].repeat(1_000_000)).is_err(), "and no stack overflow");
        assert_eq!(read(&bytes), Ok(deepest), "an error leaves no level behind");
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_stack_overflow() {
        for levels in [LEVELS_MAX, 100_000, 10_000_000] {
            assert!(postcard::from_bytes::<Expr>(&negations(levels)).is_err());
        }
        let array = postcard::to_stdvec(&Value::Array(vec![Value::Null])).unwrap();
        let arrays = array[..array.len() - 1].repeat(100_000);
        assert!(postcard::from_bytes::<Value>(&arrays).is_err());
        let deepest: Expr = postcard::from_bytes(&negations(LEVELS_MAX - 1)).expect("deep enough");
        let again = postcard::to_stdvec(&deepest).unwrap();
        assert_eq!(again, negations(LEVELS_MAX - 1), "and an error leaves no level behind");
    }
}
