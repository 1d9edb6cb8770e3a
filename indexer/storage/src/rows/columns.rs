//! The columns of an index, and how an index divides them into groups.

use std::fmt;

use proto::model::index::IndexInfo;
use serde::{Deserialize, Serialize};

/// A set of columns.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Columns(pub u64);

impl Columns {
    /// No column.
    pub const NONE: Self = Self(0);
    /// Every column.
    pub const ALL: Self = Self(u64::MAX);
    /// The entry: key, document id, epoch, erased or not.
    pub const ENTRY: Self = Self(1);
    /// The back index: which entries a document has.
    pub const BACK: Self = Self(1 << 63);
    /// All included columns.
    pub const INCLUDE: Self = Self(!(1 | 1 << 63));
    /// The entry with all included columns.
    pub const FORWARD: Self = Self(!(1 << 63));

    /// The included column of a number, counted from 0; those from 61 on share one.
    pub fn include(number: usize) -> Self {
        Self(1 << (1 + number.min(61)))
    }

    /// Those of either.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of both.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Has it all of the other's?
    pub fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Has it one of the other's?
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Is it none?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each column by itself.
    pub fn each(self) -> impl Iterator<Item = Self> {
        (0..64).map(|bit| Self(1 << bit)).filter(move |column| self.contains(*column))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        // All included columns together, as they mostly are, have one name.
        let whole = self.contains(Self::INCLUDE);
        let named = if whole { Self(self.0 & !Self::INCLUDE.0) } else { *self };
        let mut separator = "";
        for column in named.each() {
            f.write_str(separator)?;
            match column {
                Self::ENTRY => f.write_str("entry")?,
                Self::BACK => f.write_str("back")?,
                included => write!(f, "include {}", included.0.trailing_zeros() - 1)?,
            }
            separator = ",";
        }
        if whole {
            write!(f, "{separator}include")?;
        }
        Ok(())
    }
}

/// How an index divides its columns into groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// The included values stand with their entries: what reads them finds both at one place.
    #[default]
    Together,
    /// The included values have fragments of their own: who does not ask for them never reads past them.
    Apart,
}

impl Grouping {
    /// The groups that entries and included values are written to.
    pub fn forward(self) -> &'static [Columns] {
        match self {
            Self::Together => &[Columns::FORWARD],
            Self::Apart => &[Columns::ENTRY, Columns::INCLUDE],
        }
    }

    /// The division that an index can have: without included values there is nothing to set apart.
    pub fn possible_for(self, info: &IndexInfo) -> Self {
        if info.spec.include.is_empty() { Self::Together } else { self }
    }

    /// All groups.
    pub fn groups(self) -> &'static [Columns] {
        match self {
            Self::Together => &[Columns::FORWARD, Columns::BACK],
            Self::Apart => &[Columns::ENTRY, Columns::INCLUDE, Columns::BACK],
        }
    }
}
