//! Parses `ALTER INDEX` and `REINDEX`. A change of the definition builds a new generation.
//! Placement, copies and the grouping of columns are changed without a build.

use proto::model::ids::SliceNo;
use proto::model::index::{Compression, INCLUDED_KB_MAX, REPLICAS_MAX, SLICES_MAX};
use proto::{Error, ErrorCode};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::sql::ast::{Admin, IndexChange, IndexOptions, Statement};
use crate::sql::error::{SqlError, SqlResult};

const OPTIONS: &str =
    "slices, replicas, separate_included_columns, included_kb_max, compression and slice_bytes_max";

impl Cursor<'_> {
    /// Parses `REINDEX [INDEX] i`.
    pub(super) fn reindex(&mut self) -> SqlResult<Statement> {
        self.expect_word("REINDEX")?;
        // Alone it may be the name of an index.
        if self.is("INDEX") && matches!(self.peek_nth(1), Token::Word(_)) {
            self.expect_word("INDEX")?;
        }
        let name = self.object_name("the name of an index")?;
        Ok(Statement::AlterIndex { name, change: IndexChange::Nothing })
    }

    /// Parses `ALTER INDEX i …`, after the first two words.
    pub(super) fn alter_index(&mut self) -> SqlResult<Statement> {
        let name = self.object_name("the name of an index")?;
        if self.eat_words(&["MOVE", "SLICE"]) {
            return self.move_slice(name);
        }
        if self.eat_words(&["RENAME", "TO"]) {
            let to = self.new_name("the new name of the index")?;
            return Ok(Statement::RenameIndex { name, to });
        }
        if self.is("SET") && self.peek_nth(1) == &Token::LParen {
            self.expect_word("SET")?;
            return self.set_options(name);
        }
        let change = self.index_change()?;
        Ok(Statement::AlterIndex { name, change })
    }

    /// Parses a change of the definition.
    fn index_change(&mut self) -> SqlResult<IndexChange> {
        Ok(match () {
            () if self.eat_words(&["SET", "KEYS"]) => IndexChange::Keys(self.list(Self::key_item)?),
            () if self.eat_words(&["SET", "WHERE"]) => {
                IndexChange::Predicate(Some(self.index_condition()?))
            }
            () if self.eat_words(&["DROP", "WHERE"]) => IndexChange::Predicate(None),
            () if self.eat_words(&["ADD", "INCLUDE"]) => {
                IndexChange::AddInclude(self.list(Self::text_expr)?)
            }
            () if self.eat_words(&["DROP", "INCLUDE"]) => {
                IndexChange::DropInclude(self.list(Self::text_expr)?)
            }
            () if self.eat_words(&["PARTITION", "BY"]) => IndexChange::Partition(self.partition()?),
            () => {
                return Err(self.expected(
                    "SET (…), SET KEYS, SET WHERE, DROP WHERE, ADD INCLUDE, DROP INCLUDE, \
                     PARTITION BY, RENAME TO or MOVE SLICE",
                ));
            }
        })
    }

    /// Parses `MOVE SLICE k [FROM 'm'] TO 'n'`.
    fn move_slice(&mut self, index: String) -> SqlResult<Statement> {
        let place = self.expected("a slice");
        let slice = self.integer("the number of a slice")?;
        let Some(slice) = u16::try_from(slice).ok().filter(|slice| *slice < SLICES_MAX) else {
            let message = format!("there is no slice {slice}: an index has at most {SLICES_MAX}");
            let error = Error::new(ErrorCode::InvalidParameter, message);
            return Err(SqlError { error, position: place.position });
        };
        let from = match self.eat_word("FROM") {
            true => Some(self.node()?),
            false => None,
        };
        self.expect_word("TO")?;
        let to = self.node()?;
        Ok(Statement::Admin(Admin::MoveSlice { index, slice: SliceNo(slice), from, to }))
    }

    /// Parses `(option = value, …)`. If the only options are the number of copies, the grouping
    /// of columns or the size of slices, the index is changed without a build.
    fn set_options(&mut self, index: String) -> SqlResult<Statement> {
        let place = self.expected("options");
        let options = self.index_options()?;
        if let Some(bytes) = options.slice_bytes_max {
            let alone = IndexOptions { slice_bytes_max: Some(bytes), ..IndexOptions::default() };
            if options == alone {
                return Ok(Statement::Admin(Admin::SetSliceBytesMax { index, bytes }));
            }
            let what = "slice_bytes_max is set in place, and the other options are not";
            let error = Error::new(ErrorCode::InvalidParameter, what)
                .with_hint("set it in a statement of its own");
            return Err(SqlError { error, position: place.position });
        }
        let IndexOptions { slices, replicas, separate_included_columns, .. } = options;
        let in_place =
            slices.is_none() && options.included_kb_max.is_none() && options.compression.is_none();
        Ok(match (replicas, separate_included_columns) {
            (Some(replicas), None) if in_place => {
                Statement::Admin(Admin::SetReplicas { index, replicas })
            }
            (None, Some(separate)) if in_place => {
                Statement::Admin(Admin::SeparateIncludedColumns { index, separate })
            }
            _ => Statement::AlterIndex { name: index, change: IndexChange::Options(options) },
        })
    }

    /// Parses the options of an index in parentheses.
    fn index_options(&mut self) -> SqlResult<IndexOptions> {
        let mut options = IndexOptions::default();
        for option in self.distinct_options()? {
            match option.name.as_str() {
                "slices" => options.slices = Some(option.integer(1, SLICES_MAX.into())? as u16),
                "replicas" => {
                    options.replicas = Some(option.integer(0, REPLICAS_MAX.into())? as u8);
                }
                "separate_included_columns" => {
                    options.separate_included_columns = Some(option.boolean()?);
                }
                "include_apart" => return Err(option.renamed_error("separate_included_columns")),
                "included_kb_max" => {
                    let kb_max = option.integer(1, INCLUDED_KB_MAX.into())?;
                    options.included_kb_max = Some(kb_max as u16);
                }
                "slice_bytes_max" => options.slice_bytes_max = Some(option.bytes()?),
                "compression" => options.compression = Some(option.one_of(&Compression::NAMES)?),
                _ => return Err(option.unknown_error(OPTIONS)),
            }
        }
        Ok(options)
    }
}
