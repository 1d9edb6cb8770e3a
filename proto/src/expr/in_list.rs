//! The list of values of an `IN`. The constants in it are sorted, so that a look-up among `n` of
//! them takes `log n` steps.
//!
//! The list keeps its items in the order of the statement. The first look-up sorts the constants,
//! and stores the sorted positions. Items that are not constants are evaluated one after the
//! other.

use std::ops::Deref;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::cost::{CostMeter, TooCostly, comparison_cost};
use crate::value::{NULL, Value, compare};

/// The list of items of an `IN`. Boxed to the size of a pointer, because every recursive function
/// over expressions has several lists in its stack frame.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LookUpList<T>(Box<Items<T>>);

/// An item of an `IN` list, which may be a constant.
pub trait Item {
    /// Returns the value of the item if it is a constant.
    fn constant(&self) -> Option<&Value>;
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Items<T> {
    items: Vec<T>,
    /// The positions of constants and other items, computed at the first look-up.
    #[serde(skip)]
    places: OnceLock<Places>,
}

/// The positions in a list of its constants, and of its other items.
#[derive(Clone, Debug, Default)]
struct Places {
    /// The positions of the constants, in the order of their values.
    constants: Vec<u32>,
    /// The positions of all other items, in their order.
    others: Vec<u32>,
}

impl<T: Item> LookUpList<T> {
    /// Returns the items of the list.
    pub fn into_items(self) -> Vec<T> {
        self.0.items
    }

    /// Returns the items for changes; the stored positions are dropped.
    pub fn items_mut(&mut self) -> &mut Vec<T> {
        self.0.places = OnceLock::new();
        &mut self.0.items
    }

    /// Sorts the list and removes repeated items if all items are constants, which does not
    /// change the result of an `IN`.
    pub fn normalize(&mut self) {
        if self.0.items.iter().all(|item| item.constant().is_some()) {
            let items = self.items_mut();
            items.sort_by(|a, b| compare(constant(a), constant(b)));
            items.dedup_by(|later, kept| compare(constant(later), constant(kept)).is_eq());
        }
    }

    /// Returns the items that are not constants.
    pub(super) fn others(&self) -> impl Iterator<Item = &T> {
        self.places().others.iter().map(|at| &self.0.items[*at as usize])
    }

    /// Looks for a constant that equals the value, which must be neither NULL nor MISSING.
    /// Returns `None` (unknown) if none is equal and one is of another type.
    pub(super) fn has_constant(
        &self,
        value: &Value,
        cost: &CostMeter,
    ) -> Result<Option<bool>, TooCostly> {
        let constants = &self.places().constants;
        let constant_at = |at: usize| constant(&self.0.items[constants[at] as usize]);
        let (mut low, mut high) = (0, constants.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let found = constant_at(middle);
            cost.add(1 + comparison_cost(found, value))?;
            match compare(found, value) {
                std::cmp::Ordering::Equal => return Ok(Some(true)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        // Values are ordered by type first, so that all constants have the type of the first and the last one.
        let other_type = |at: usize| constant_at(at).type_rank() != value.type_rank();
        let unknown = !constants.is_empty() && (other_type(0) || other_type(constants.len() - 1));
        Ok((!unknown).then_some(false))
    }

    fn places(&self) -> &Places {
        self.0.places.get_or_init(|| {
            let mut places = Places::default();
            for (at, item) in (0u32..).zip(&self.0.items) {
                match item.constant() {
                    Some(_) => places.constants.push(at),
                    None => places.others.push(at),
                }
            }
            // A list from the planner is sorted already, which this sort notices.
            let value = |at: &u32| constant(&self.0.items[*at as usize]);
            places.constants.sort_by(|a, b| compare(value(a), value(b)));
            places
        })
    }
}

fn constant<T: Item>(item: &T) -> &Value {
    item.constant().unwrap_or(&NULL)
}

impl<T> Deref for LookUpList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0.items
    }
}

impl<T> From<Vec<T>> for LookUpList<T> {
    fn from(items: Vec<T>) -> Self {
        Self(Box::new(Items { items, places: OnceLock::new() }))
    }
}

impl<T> FromIterator<T> for LookUpList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<T: PartialEq> PartialEq for LookUpList<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.items == other.0.items
    }
}
