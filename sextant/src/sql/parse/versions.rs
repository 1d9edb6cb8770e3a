//! Parses statements about versioned data sets: `CREATE BUCKET … FROM FILES`, and `ALTER BUCKET`
//! with LOAD VERSION or CANCEL VERSION.

use proto::model::data_set::{Files, IDLE_MS_MAX, PARTITIONS_MAX, REPLICATION_MAX};

use super::cursor::Cursor;
use crate::sql::ast::{Admin, CreateDataSet, Statement};
use crate::sql::error::SqlResult;

/// The default name of the field that contains a document's id.
const ID_DEFAULT: &str = "id";

impl Cursor<'_> {
    /// Parses `CREATE BUCKET b FROM FILES [WITH (…)]`, from the options on.
    pub(super) fn create_data_set(
        &mut self,
        name: String,
        if_not_exists: bool,
    ) -> SqlResult<Statement> {
        let (mut partitions, mut replication, mut idle_ms) = (None, None, None);
        for option in self.with_options()? {
            match option.name.as_str() {
                "partitions" => partitions = Some(option.integer(1, PARTITIONS_MAX.into())? as u16),
                "replication" => {
                    replication = Some(option.integer(1, REPLICATION_MAX.into())? as u16);
                }
                "version_idle" => idle_ms = Some(option.duration_ms(IDLE_MS_MAX)?),
                _ => return Err(option.unknown_error("partitions, replication and version_idle")),
            }
        }
        let create = CreateDataSet { name, if_not_exists, partitions, replication, idle_ms };
        Ok(Statement::CreateDataSet(create))
    }

    /// Parses `ALTER BUCKET b LOAD VERSION 'v' FROM 'pattern' [WITH (id = 'field',
    /// allow_empty)]`, after `LOAD`.
    pub(super) fn load_version(&mut self, bucket: String) -> SqlResult<Statement> {
        let version = self.version()?;
        self.expect_word("FROM")?;
        let Some(pattern) = self.eat_string() else {
            return Err(self.expected("the files, such as 'people/*.parquet'"));
        };
        let (mut id, mut allow_empty) = (ID_DEFAULT.to_owned(), false);
        for option in self.with_options()? {
            match option.name.as_str() {
                "id" => id = option.text()?,
                "allow_empty" => allow_empty = option.boolean()?,
                _ => return Err(option.unknown_error("id and allow_empty")),
            }
        }
        let files = Files { pattern, id };
        Ok(Statement::LoadVersion { bucket, version, files, allow_empty })
    }

    /// Parses `ALTER BUCKET b CANCEL VERSION 'v'`, after `CANCEL`.
    pub(super) fn cancel_version(&mut self, bucket: String) -> SqlResult<Statement> {
        let version = self.version()?;
        Ok(Statement::Admin(Admin::CancelVersion { bucket, version }))
    }

    /// Parses `VERSION 'v'`; returns the name of the version.
    fn version(&mut self) -> SqlResult<String> {
        self.expect_word("VERSION")?;
        self.eat_string().ok_or_else(|| self.expected("the name of a version in quotes"))
    }
}
