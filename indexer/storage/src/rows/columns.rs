//! Columns of an index, and their division into groups that are stored in separate fragments.

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
    /// The entry: key, document id, epoch, tombstone flag.
    pub const ENTRY: Self = Self(1);
    /// The back index: the entries of a document.
    pub const BACK: Self = Self(1 << 63);
    /// All included columns.
    pub const INCLUDE: Self = Self(!(1 | 1 << 63));
    /// The entry and all included columns.
    pub const FORWARD: Self = Self(!(1 << 63));

    /// Returns the included column number `number`, counted from 0. Columns from number 61 on
    /// share one bit.
    pub fn include(number: usize) -> Self {
        Self(1 << (1 + number.min(61)))
    }

    /// Returns the union of the sets.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the intersection of the sets.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if `other` is a subset.
    pub fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Returns true if the sets overlap.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the columns of the set.
    pub fn columns(self) -> impl Iterator<Item = Self> {
        (0..64).map(|bit| Self(1 << bit)).filter(move |column| self.contains(*column))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        // All included columns together have one name, since groups usually have all or none of
        // them.
        let whole = self.contains(Self::INCLUDE);
        let named = if whole { Self(self.0 & !Self::INCLUDE.0) } else { *self };
        let mut separator = "";
        for column in named.columns() {
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

/// Division of an index's columns into groups, which are stored in separate fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Included values are stored with their entries: one read finds both.
    #[default]
    Together,
    /// Included values have separate fragments: a scan that needs no included values never reads
    /// them.
    Apart,
}

impl Grouping {
    /// Returns the groups to which rows of entries are written.
    pub fn forward(self) -> &'static [Columns] {
        match self {
            Self::Together => &[Columns::FORWARD],
            Self::Apart => &[Columns::ENTRY, Columns::INCLUDE],
        }
    }

    /// Returns this grouping if the index has included values, and `Together` otherwise.
    pub fn possible_for(self, info: &IndexInfo) -> Self {
        if info.spec.include.is_empty() { Self::Together } else { self }
    }

    /// Returns all column groups of this division.
    pub fn groups(self) -> &'static [Columns] {
        match self {
            Self::Together => &[Columns::FORWARD, Columns::BACK],
            Self::Apart => &[Columns::ENTRY, Columns::INCLUDE, Columns::BACK],
        }
    }
}
