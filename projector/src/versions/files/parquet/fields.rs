//! The columns of a Parquet file, as fields of documents.

use std::collections::BTreeSet;

use parquet::basic::LogicalType;
use parquet::schema::types::Type;
use proto::value::write_json_text;
use proto::{Error, ErrorCode, Result};

use super::super::batch::RowRules;
use super::kind::{Kind, unsupported_type_error};

/// The top-level columns of a Parquet file, each of which becomes a field of the documents.
pub struct Fields {
    /// For each column, the text that precedes its value in a document: `{"name":` or `,"name":`.
    pub heads: Vec<Vec<u8>>,
    names: Vec<String>,
    /// The index of the column with the id.
    pub id: usize,
}

impl Fields {
    /// Creates the fields for the schema of a file. An error if the column with the id is
    /// missing, or if a column cannot be read.
    pub fn new(schema: &Type, rules: &RowRules) -> Result<Self> {
        let fields = schema.get_fields().iter();
        let names: Vec<String> = fields.map(|field| field.name().to_owned()).collect();
        schema.get_fields().iter().try_for_each(|field| check(field))?;
        check_names(schema)?;
        let Some(id) = names.iter().position(|name| *name == rules.id) else {
            let what = format!("the file has no column {:?} for the id", rules.id);
            return Err(Error::new(ErrorCode::InvalidText, what)
                .with_hint(format!("the columns are {}", names.join(", "))));
        };
        let head = |(at, name): (usize, &String)| {
            let mut head = vec![if at == 0 { b'{' } else { b',' }];
            write_json_text(name, &mut head);
            head.push(b':');
            head
        };
        let heads = names.iter().enumerate().map(head).collect();
        Ok(Self { heads, names, id })
    }

    /// Adds the name of a column to an error.
    pub fn in_column(&self, at: usize, error: Error) -> Error {
        error.context(format!("column {:?}", self.names[at]))
    }

    /// The error for an id that is null, or of another type.
    pub fn bad_id_error(&self) -> Error {
        let what = format!("column {:?} is neither text nor an integer", self.names[self.id]);
        Error::new(ErrorCode::InvalidText, what)
    }
}

/// Returns an error if JSON documents cannot represent the values of a column exactly.
fn check(field: &Type) -> Result<()> {
    if field.is_primitive() {
        return Kind::of(field).map(|_| ());
    }
    match field.get_basic_info().logical_type_ref() {
        None | Some(LogicalType::List | LogicalType::Map) => {}
        Some(_) => return Err(unsupported_type_error(field)),
    }
    check_names(field)?;
    field.get_fields().iter().try_for_each(|field| check(field))
}

/// Returns an error if a group of columns has two fields with the same name.
fn check_names(group: &Type) -> Result<()> {
    let mut names = BTreeSet::new();
    let twice = group.get_fields().iter().find(|field| !names.insert(field.name()));
    twice.map_or(Ok(()), |field| {
        let what = format!("the file has column {:?} twice", field.name());
        Err(Error::new(ErrorCode::InvalidText, what))
    })
}
