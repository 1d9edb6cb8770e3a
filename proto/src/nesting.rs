//! Limits the nesting of decoded trees. A decoder recurses, and a stack overflow aborts the
//! process, so that a client could stop a node with a few kilobytes. Recursive types therefore
//! count their levels while they are decoded.
//!
//! A recursive type derives its code with `#[serde(remote = "Self")]`, which generates inherent
//! functions. It implements the serde traits with `recursive!`, which calls these functions and
//! counts a level around each call. The type's fields are decoded through the traits, so their
//! levels are counted too.

use std::cell::Cell;

/// Maximum nesting of a decoded tree. The longest statement needs less (500 operators in 200
/// parentheses), and a thread's stack suffices for it in a debug build.
pub const LEVELS_MAX: usize = 768;

thread_local! {
    static LEVELS: Cell<usize> = const { Cell::new(0) };
}

/// A guard that counts one level of nesting while it exists.
pub(crate) struct Level;

impl Level {
    /// Counts one level more; `None` if the tree is too deep.
    pub fn enter() -> Option<Self> {
        let deeper = LEVELS.get() + 1;
        (deeper <= LEVELS_MAX).then(|| {
            LEVELS.set(deeper);
            Self
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVELS.set(LEVELS.get() - 1);
    }
}

/// Implements `Serialize` and `Deserialize` for a type whose code is derived with `remote = "Self"`.
macro_rules! recursive {
    ($type:ty) => {
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
                let _level = crate::nesting::Level::enter()
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
    use crate::value::Value;

    /// Returns the encoding of `levels` nested negations of a constant.
    fn negations(levels: usize) -> Vec<u8> {
        let not = postcard::to_stdvec(&Expr::Not(Box::new(Expr::DocumentId))).unwrap()[0];
        let mut bytes = vec![not; levels];
        bytes.extend(postcard::to_stdvec(&Expr::DocumentId).unwrap());
        bytes
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
