//! The values of an `IN`: a look-up among its constants takes `log n` steps.
//!
//! The list keeps its items as they were written. The first look-up sorts the constants once, and
//! stores their positions; items that are not constants are evaluated one after the other.

use std::ops::Deref;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::cost::{CostMeter, TooCostly, comparison_cost};
use crate::value::{NULL, Value, compare};

/// The items of an `IN`. It is as small as a pointer, because every recursive function over expressions has several of them
/// in its stack frame.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LookUpList<T>(Box<Items<T>>);

/// An item of a list that may be a constant.
pub trait Item {
    /// The value of the item, if it is a constant.
    fn constant(&self) -> Option<&Value>;
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Items<T> {
    items: Vec<T>,
    /// Positions that are computed from the items at the first look-up.
    #[serde(skip)]
    places: OnceLock<Places>,
}

/// The positions of a list's items by kind.
#[derive(Clone, Debug, Default)]
struct Places {
    /// The positions of the constants, in the order of their values.
    constants: Vec<u32>,
    /// The positions of all other items, in their order.
    others: Vec<u32>,
}

impl<T: Item> LookUpList<T> {
    /// Takes the items out.
    pub fn into_items(self) -> Vec<T> {
        self.0.items
    }

    /// Returns the items, for changes by the caller.
    pub fn items_mut(&mut self) -> &mut Vec<T> {
        self.0.places = OnceLock::new();
        &mut self.0.items
    }

    /// Sorts a list of constants and removes repeated ones, which changes no result. Other lists
    /// are not changed.
    pub fn normalize(&mut self) {
        if self.0.items.iter().all(|item| item.constant().is_some()) {
            let items = self.items_mut();
            items.sort_by(|a, b| compare(constant(a), constant(b)));
            items.dedup_by(|later, kept| compare(constant(later), constant(kept)).is_eq());
        }
    }

    /// The items that are not constants.
    pub(super) fn others(&self) -> impl Iterator<Item = &T> {
        self.places().others.iter().map(|at| &self.0.items[*at as usize])
    }

    /// Returns true if a constant equals the value, which must be neither NULL nor MISSING; `None`
    /// (unknown) if none does and one has another type.
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
