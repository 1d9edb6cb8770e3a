//! The relations of one revision of the definitions, for one user, and of one session. The rows of the definitions
//! are computed at their first use, and stored with their look-ups as long as the revision is the newest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use proto::value::Value;

use super::build::schema;
use super::{Definition, ObjectKind, Relations, Rows, classes, cluster, definitions, fixed};
use crate::data::{RelationRow, data};
use crate::error::{Error, Result};
use crate::facts::{Facts, SessionFacts};
use crate::types::name::type_of_name;
use crate::types::oid::Oid;

/// The relations of one revision of the definitions, for one user. Those of sessions have no rows.
pub struct Definitions {
    facts: Facts,
    /// The rows that were computed, by the relation's index.
    rows: Mutex<BTreeMap<usize, Rows>>,
    /// The look-ups that were built, by relation and column.
    look_ups: Mutex<BTreeMap<(usize, usize), Arc<LookUp>>>,
}

/// The positions of the rows by the value of a column. Values are compared by their total order.
type LookUp = BTreeMap<Value, Arc<Vec<u32>>>;

impl Definitions {
    /// Creates the relations of these definitions.
    pub fn new(facts: Facts) -> Self {
        Self { facts, rows: Mutex::default(), look_ups: Mutex::default() }
    }

    /// Returns the definitions.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Computes the rows of a table.
    fn table(&self, relation: &RelationRow) -> Result<Rows> {
        let facts = &self.facts;
        match relation.name.as_str() {
            "pg_class" => classes::pg_class(facts),
            "pg_attribute" => classes::pg_attribute(facts),
            "pg_type" => classes::pg_type(facts),
            "pg_index" => classes::pg_index(facts),
            "pg_constraint" => classes::pg_constraint(facts),
            "pg_description" => classes::pg_description(facts),
            "pg_namespace" => fixed::pg_namespace(),
            "pg_am" => fixed::pg_am(),
            "pg_proc" => fixed::pg_proc(),
            "pg_operator" => fixed::pg_operator(),
            "pg_cast" => fixed::pg_cast(),
            "pg_collation" => fixed::pg_collation(),
            "pg_language" => fixed::pg_language(),
            "pg_opclass" => fixed::pg_opclass(),
            "pg_opfamily" => fixed::pg_opfamily(),
            "pg_database" => cluster::pg_database(facts),
            "pg_tablespace" => cluster::pg_tablespace(),
            "pg_authid" => cluster::pg_authid(facts),
            "pg_stat_all_tables" => cluster::pg_stat_all_tables(facts),
            "pg_stat_all_indexes" => cluster::pg_stat_all_indexes(facts),
            // Sextant has no such objects, so the relation is empty.
            _ => Ok(Rows::default()),
        }
    }

    /// Returns the OID of the relation with a name that a statement can read: the readable relation of an index,
    /// not the index of its table.
    fn relation_named(&self, name: &str) -> Option<Oid> {
        let table = self.facts.tables.iter().find(|table| table.name == name);
        let index = || self.facts.indexes.iter().find(|index| index.name == name);
        let key = || self.facts.tables.iter().find(|table| table.primary_key() == name);
        let oid = table.and_then(|table| table.oids().map(|oids| oids.table));
        let oid = oid.or_else(|| index()?.oids().map(|oids| oids.relation));
        oid.or_else(|| key()?.oids().map(|oids| oids.primary_key))
    }

    fn relation_name(&self, oid: Oid) -> Option<String> {
        for table in &self.facts.tables {
            match table.oids() {
                Some(oids) if oids.table == oid => return Some(table.name.clone()),
                Some(oids) if oids.primary_key == oid => return Some(table.primary_key()),
                _ => {}
            }
        }
        let is_named = |index: &&crate::facts::Index| {
            index.oids().is_some_and(|oids| oids.index == oid || oids.relation == oid)
        };
        self.facts.indexes.iter().find(is_named).map(|index| index.name.clone())
    }
}

impl Relations for Definitions {
    fn rows(&self, relation: usize) -> Result<Rows> {
        let row =
            data().relations.get(relation).ok_or_else(|| Error::internal("no such relation"))?;
        let known =
            self.rows.lock().unwrap_or_else(PoisonError::into_inner).get(&relation).cloned();
        if let Some(rows) = known {
            return Ok(rows);
        }
        // Two statements may compute the same rows at a time; they are equal.
        let rows = self.table(row)?;
        self.rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(relation, Arc::clone(&rows));
        Ok(rows)
    }

    fn rows_with(&self, relation: usize, column: usize, value: &Value) -> Result<Arc<Vec<u32>>> {
        let key = (relation, column);
        let known = self.look_ups.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let look_up = match known {
            Some(look_up) => look_up,
            None => {
                let look_up = Arc::new(look_up(&self.rows(relation)?, column));
                self.look_ups
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(key, Arc::clone(&look_up));
                look_up
            }
        };
        Ok(look_up.get(value).cloned().unwrap_or_default())
    }

    fn object_name(&self, kind: ObjectKind, oid: Oid) -> Option<(String, String)> {
        let public = |name: String| ("public".to_owned(), name);
        let catalog = |name: &str| ("pg_catalog".to_owned(), name.to_owned());
        match kind {
            ObjectKind::Relation => {
                let fixed = data().relations.iter().find(|relation| relation.oid == oid);
                fixed
                    .map(|relation| (relation.schema.clone(), relation.name.clone()))
                    .or_else(|| self.relation_name(oid).map(public))
            }
            ObjectKind::Type => {
                data().type_row(oid).map(|row| (row.schema.clone(), row.name.clone()))
            }
            ObjectKind::Function => {
                let own = data().functions.iter().find(|row| row.oid == oid);
                own.map(|row| (row.schema.clone(), row.name.clone()))
                    .or_else(|| fixed::io_function_name(oid).map(catalog))
            }
            ObjectKind::Operator => {
                data().operators.iter().find(|row| row.oid == oid).map(|row| catalog(&row.name))
            }
            ObjectKind::Role => {
                let role = self.facts.roles.iter().find(|role| role.oid() == Some(oid));
                let owner =
                    (oid == crate::facts::OWNER).then(|| crate::facts::OWNER_NAME.to_owned());
                role.map(|role| role.name.clone()).or(owner).map(|name| (String::new(), name))
            }
            ObjectKind::Schema => {
                let name = match oid {
                    schema::PG_CATALOG => "pg_catalog",
                    schema::PUBLIC => "public",
                    schema::INFORMATION_SCHEMA => "information_schema",
                    _ => return None,
                };
                Some((String::new(), name.to_owned()))
            }
            ObjectKind::Collation => match oid {
                100 => Some(catalog("default")),
                950 => Some(catalog("C")),
                951 => Some(catalog("POSIX")),
                _ => None,
            },
        }
    }

    fn object_named(&self, kind: ObjectKind, schema: Option<&str>, name: &str) -> Option<Oid> {
        let in_schema = |own: &str| schema.is_none_or(|schema| schema == own);
        match kind {
            ObjectKind::Relation => {
                let fixed =
                    |schema: &str| data().relation(schema, name).map(|relation| relation.oid);
                let own = || self.relation_named(name).filter(|_| in_schema("public"));
                match schema {
                    Some(schema) => fixed(schema).or_else(own),
                    None => fixed("pg_catalog").or_else(own),
                }
            }
            ObjectKind::Type => type_of_name(name)
                .filter(|oid| data().type_row(*oid).is_some_and(|row| in_schema(&row.schema))),
            ObjectKind::Function => {
                let own = data()
                    .functions_named(name)
                    .find(|row| in_schema(&row.schema))
                    .map(|row| row.oid);
                own.or_else(|| {
                    Some(fixed::io_function(name))
                        .filter(|oid| *oid != 0 && in_schema("pg_catalog"))
                })
            }
            ObjectKind::Operator => data().operators_named(name).next().map(|row| row.oid),
            ObjectKind::Role => {
                let role = self
                    .facts
                    .roles
                    .iter()
                    .find(|role| role.name == name)
                    .and_then(|role| role.oid());
                role.or_else(|| (name == crate::facts::OWNER_NAME).then_some(crate::facts::OWNER))
            }
            ObjectKind::Schema => match name {
                "pg_catalog" => Some(schema::PG_CATALOG),
                "public" => Some(schema::PUBLIC),
                "information_schema" => Some(schema::INFORMATION_SCHEMA),
                _ => None,
            },
            ObjectKind::Collation => match name {
                "default" => Some(100),
                "C" => Some(950),
                "POSIX" => Some(951),
                _ => None,
            },
        }
    }

    fn definition(
        &self,
        kind: Definition,
        oid: Oid,
        column: i64,
        is_pretty: bool,
    ) -> Result<Option<String>> {
        Ok(definitions::definition(&self.facts, kind, oid, column, is_pretty))
    }
}

fn look_up(rows: &Rows, column: usize) -> LookUp {
    let mut positions: BTreeMap<Value, Vec<u32>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let (Some(value), Ok(at)) = (row.get(column), u32::try_from(at)) {
            positions.entry(value.clone()).or_default().push(at);
        }
    }
    positions.into_iter().map(|(value, at)| (value, Arc::new(at))).collect()
}

/// The relations of a statement: those of the definitions, and those of its session.
pub struct Snapshot {
    definitions: Arc<Definitions>,
    session: SessionFacts,
}

impl Snapshot {
    /// Creates the relations of a statement.
    pub fn new(definitions: Arc<Definitions>, session: SessionFacts) -> Self {
        Self { definitions, session }
    }

    /// Computes the rows of a relation of the session; `None` for another relation.
    fn of_session(&self, relation: usize) -> Option<Result<Rows>> {
        match data().relations.get(relation)?.name.as_str() {
            "pg_settings" => Some(cluster::pg_settings(&self.session)),
            "pg_stat_activity" => {
                Some(cluster::pg_stat_activity(&self.definitions.facts, &self.session))
            }
            _ => None,
        }
    }
}

impl Relations for Snapshot {
    fn rows(&self, relation: usize) -> Result<Rows> {
        self.of_session(relation).unwrap_or_else(|| self.definitions.rows(relation))
    }

    fn rows_with(&self, relation: usize, column: usize, value: &Value) -> Result<Arc<Vec<u32>>> {
        match self.of_session(relation) {
            None => self.definitions.rows_with(relation, column, value),
            Some(rows) => Ok(look_up(&rows?, column).get(value).cloned().unwrap_or_default()),
        }
    }

    fn object_name(&self, kind: ObjectKind, oid: Oid) -> Option<(String, String)> {
        self.definitions.object_name(kind, oid)
    }

    fn object_named(&self, kind: ObjectKind, schema: Option<&str>, name: &str) -> Option<Oid> {
        self.definitions.object_named(kind, schema, name)
    }

    fn definition(
        &self,
        kind: Definition,
        oid: Oid,
        column: i64,
        is_pretty: bool,
    ) -> Result<Option<String>> {
        self.definitions.definition(kind, oid, column, is_pretty)
    }
}
