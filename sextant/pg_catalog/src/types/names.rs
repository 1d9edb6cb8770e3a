//! Names of objects and types in texts: quoted where SQL needs it, and with the schema where the
//! search path does not find them.

use proto::value::Value;

use super::ident::{quote_ident, split_name};
use super::name::format_type;
use super::oid::{self, Oid};
use crate::data::data;
use crate::error::{Error, Result};
use crate::relations::{ObjectKind, Relations};
use crate::session::Session;

/// The names of objects, as the session's search path finds them.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The relations, for the names and OIDs of objects.
    pub relations: &'a dyn Relations,
    /// The session, for its search path.
    pub session: &'a dyn Session,
}

impl<'a> Names<'a> {
    /// Returns the schemas in which names are looked up, `pg_catalog` among them.
    pub fn path(&self) -> Vec<&'a str> {
        let path: Vec<&str> = self.session.search_path().iter().map(String::as_str).collect();
        if path.contains(&"pg_catalog") {
            return path;
        }
        std::iter::once("pg_catalog").chain(path).collect()
    }

    /// Returns the object with a name, in a schema or on the search path.
    pub fn find(&self, kind: ObjectKind, schema: Option<&str>, name: &str) -> Option<Oid> {
        if schema.is_some() || matches!(kind, ObjectKind::Role | ObjectKind::Schema) {
            return self.relations.object_named(kind, schema, name);
        }
        self.path().iter().find_map(|schema| self.relations.object_named(kind, Some(schema), name))
    }

    /// Returns true if an object is found by its name without a schema; `None` if there is no such object.
    pub fn is_visible(&self, kind: ObjectKind, oid: Oid) -> Option<bool> {
        let (schema, name) = self.relations.object_name(kind, oid)?;
        // Functions and operators are told apart by their arguments as well, which an OID implies.
        if matches!(kind, ObjectKind::Function | ObjectKind::Operator) {
            return Some(self.path().contains(&schema.as_str()));
        }
        // The index of a table may share its name with the relation by which it is read: both are visible.
        let first = self
            .path()
            .into_iter()
            .find(|schema| self.relations.object_named(kind, Some(schema), &name).is_some());
        let is_found = self.find(kind, None, &name) == Some(oid);
        Some(is_found || (kind == ObjectKind::Relation && first == Some(schema.as_str())))
    }

    /// Returns the name of an object, with its schema unless it is visible; `None` if there is none.
    pub fn name(&self, kind: ObjectKind, oid: Oid) -> Option<String> {
        let (schema, name) = self.relations.object_name(kind, oid)?;
        let quoted = if kind == ObjectKind::Operator { name } else { quote_ident(&name) };
        match kind {
            ObjectKind::Role | ObjectKind::Schema => Some(quoted),
            _ if self.is_visible(kind, oid) == Some(true) => Some(quoted),
            _ => Some(format!("{}.{quoted}", quote_ident(&schema))),
        }
    }

    /// Returns the object that a text names; `None` if there is none. An error if the text is no name (42602).
    pub fn named(&self, kind: ObjectKind, text: &str) -> Result<Option<Oid>> {
        let name = || match kind {
            ObjectKind::Operator => {
                let (schema, name) = text.rsplit_once('.').map_or(("", text), |pair| pair);
                let schema = (!schema.is_empty()).then(|| schema.to_owned());
                Some(schema.into_iter().chain([name.to_owned()]).collect())
            }
            _ => split_name(text),
        };
        let parts: Vec<String> =
            name().ok_or_else(|| Error::new("42602", "invalid name syntax"))?;
        match &parts[..] {
            [name] => Ok(self.find(kind, None, name)),
            [schema, name] => Ok(self.find(kind, Some(schema), name)),
            [database, schema, name] if database == self.session.database() => {
                Ok(self.find(kind, Some(schema), name))
            }
            [_, _, _] => Err(Error::unsupported(format!(
                "cross-database references are not implemented: \"{text}\""
            ))),
            _ => Err(Error::new(
                "42601",
                format!("improper relation name (too many dotted names): {text}"),
            )),
        }
    }

    /// Returns the name of a type as SQL writes it, such as `character varying(3)` or `integer[]`; `None` if there
    /// is no such type. Without a modifier (`None`) `character` stands for `bpchar`.
    pub fn type_name(&self, oid: Oid, modifier: Option<i32>) -> Option<String> {
        let row = data().type_row(oid);
        let element = match row {
            Some(row) if row.name.starts_with('_') && row.element != 0 => Some(row.element),
            Some(_) => None,
            None => self.element(oid),
        };
        if let Some(element) = element {
            return Some(self.type_name(element, modifier)? + "[]");
        }
        match (oid, modifier) {
            // Without a modifier these stand for themselves; -1 says that the length is not the default one.
            (oid::BPCHAR, None) => Some("character".to_owned()),
            (oid::BIT, None) => Some("bit".to_owned()),
            _ if row.is_some() => Some(format_type(oid, modifier.unwrap_or(-1))),
            _ => self.name(ObjectKind::Type, oid),
        }
    }

    /// Returns the element's type of an array that is not in the data.
    fn element(&self, oid: Oid) -> Option<Oid> {
        let row = self.row("pg_type", "oid", oid)?;
        let is_array = row("typname")?.as_str()?.starts_with('_');
        let element = row("typelem")?.as_number()?.as_i64()?;
        (is_array && element != 0).then_some(element as Oid)
    }

    /// Returns the types of a function's arguments; `None` if there is no such function.
    pub fn argument_types(&self, oid: Oid) -> Option<Vec<Oid>> {
        let row = self.row("pg_proc", "oid", oid)?;
        match row("proargtypes")? {
            Value::Array(types) => {
                Some(types.iter().filter_map(|ty| Some(ty.as_number()?.as_i64()? as Oid)).collect())
            }
            _ => Some(Vec::new()),
        }
    }

    /// Returns the types of an operator's sides, 0 for none; `None` if there is no such operator.
    pub fn operand_types(&self, oid: Oid) -> Option<[Oid; 2]> {
        let row = self.row("pg_operator", "oid", oid)?;
        let side = |name: &str| Some(row(name)?.as_number()?.as_i64()? as Oid);
        Some([side("oprleft")?, side("oprright")?])
    }

    /// Returns the name of a configuration or a dictionary of text search, with its schema unless that is on the
    /// search path.
    pub fn text_search_name(&self, ty: Oid, oid: Oid) -> Option<String> {
        let (table, name, schema) = match ty {
            oid::REGDICTIONARY => ("pg_ts_dict", "dictname", "dictnamespace"),
            _ => ("pg_ts_config", "cfgname", "cfgnamespace"),
        };
        let row = self.row(table, "oid", oid)?;
        let name = quote_ident(row(name)?.as_str()?);
        let schema = row(schema)?.as_number()?.as_i64()? as Oid;
        let (_, schema) = self.relations.object_name(ObjectKind::Schema, schema)?;
        let is_visible = self.path().contains(&schema.as_str());
        Some(if is_visible { name } else { format!("{}.{name}", quote_ident(&schema)) })
    }

    /// Returns the functions with a name, of all schemas.
    pub fn functions(&self, name: &str) -> Result<Vec<Oid>> {
        let Some(relation) = data().relation("pg_catalog", "pg_proc") else {
            return Ok(Vec::new());
        };
        let column = |name: &str| relation.columns.iter().position(|own| own.name == name);
        let (Some(key), Some(oid)) = (column("proname"), column("oid")) else {
            return Ok(Vec::new());
        };
        let found = self.relations.rows_with(relation.index, key, &Value::from(name))?;
        let rows = self.relations.rows(relation.index)?;
        let oid = |at: &u32| rows.get(*at as usize)?.get(oid)?.as_number()?.as_i64();
        Ok(found.iter().filter_map(oid).map(|oid| oid as Oid).collect())
    }

    /// Returns the values of the first row of a table of `pg_catalog` whose column has an OID, by column.
    fn row(&self, table: &str, key: &str, oid: Oid) -> Option<impl Fn(&str) -> Option<Value>> {
        let relation = data().relation("pg_catalog", table)?;
        let column = |name: &str| relation.columns.iter().position(|own| own.name == name);
        let found =
            self.relations.rows_with(relation.index, column(key)?, &Value::int(oid.into())).ok()?;
        let at = *found.first()? as usize;
        let rows = self.relations.rows(relation.index).ok()?;
        Some(move |name: &str| {
            let at_column = relation.columns.iter().position(|own| own.name == name)?;
            rows.get(at)?.get(at_column).cloned()
        })
    }
}

/// Returns the precision and the scale of a modifier of `numeric`.
pub fn numeric_modifier(modifier: i32) -> (i32, i32) {
    let packed = modifier - 4;
    // The scale has eleven bits with a sign.
    (packed >> 16 & 0xFFFF, ((packed & 0x7FF) ^ 1024) - 1024)
}
