//! The top-level fields of a document that expressions read. A document has many fields and an
//! index reads a few, so only these are parsed.

use super::ast::Expr;
use crate::value::path::Step;

/// The fields of a document that some expressions read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fields {
    /// All fields, because an expression reads the complete document.
    All,
    /// The fields of these names, sorted.
    Only(Vec<String>),
}

impl Default for Fields {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl Fields {
    /// Returns the fields that some expressions read.
    pub fn of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Self {
        let mut fields = Self::default();
        exprs.into_iter().for_each(|expr| fields.add(expr));
        fields
    }

    /// Adds the fields that an expression reads.
    pub fn add(&mut self, expr: &Expr) {
        if let Expr::Path(steps) = expr {
            match (steps.first(), &mut *self) {
                // Reads a whole document. A path that begins with an array position is MISSING in an object, and
                // equally rare.
                (None | Some(Step::Index(_)), _) => *self = Self::All,
                (Some(Step::Field(name)), Self::Only(names)) => {
                    if let Err(at) = names.binary_search(name) {
                        names.insert(at, name.clone());
                    }
                }
                (Some(Step::Field(_)), Self::All) => {}
            }
        }
        expr.children().into_iter().for_each(|child| self.add(child));
    }

    /// Adds the fields of `others`.
    pub fn add_all(&mut self, others: Self) {
        match (&mut *self, others) {
            (Self::All, _) => {}
            (Self::Only(_), Self::All) => *self = Self::All,
            (Self::Only(names), Self::Only(others)) => {
                names.extend(others);
                names.sort_unstable();
                names.dedup();
            }
        }
    }

    /// Returns true if these fields include all fields of `others`.
    pub fn include(&self, others: &Self) -> bool {
        match (self, others) {
            (Self::All, _) => true,
            (Self::Only(_), Self::All) => false,
            (Self::Only(own), Self::Only(others)) => {
                own == others || others.iter().all(|name| own.binary_search(name).is_ok())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn path(steps: &[&str]) -> Expr {
        Expr::Path(steps.iter().map(|name| Step::Field((*name).into())).collect())
    }

    #[test]
    fn the_first_step_of_each_path_is_a_field() {
        let both = Expr::And(vec![
            Expr::Not(Box::new(path(&["b", "x"]))),
            Expr::Call(super::super::Function::Lower, vec![path(&["a"]), path(&["b"])]),
            Expr::Literal(Value::from("c")),
            Expr::DocumentId,
        ]);
        let fields = Fields::of([&both]);
        assert_eq!(fields, Fields::Only(vec!["a".into(), "b".into()]));
        assert!(fields.include(&Fields::of([&path(&["b", "y"])])));
        assert!(!fields.include(&Fields::of([&path(&["c"])])));
        assert!(!fields.include(&Fields::All) && Fields::All.include(&fields));
        assert_eq!(Fields::of([&both, &path(&[])]), Fields::All);
    }
}
