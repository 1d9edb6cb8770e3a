//! Parses `CREATE`, `DROP` and `BUILD` for buckets and indexes.

use proto::expr::Expr;
use proto::model::bucket::{SourceKind, VBUCKETS_MAX};
use proto::model::copies::COPIES_MAX;
use proto::model::index::{COLUMNS_MAX, Compression, INCLUDED_KB_MAX, REPLICAS_MAX, SLICES_MAX};
use proto::{Error, ErrorCode};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::sql::ast::{CreateBucket, CreateIndex, KeyItem, Partition, Statement, TextExpr};
use crate::sql::error::{SqlError, SqlResult, unsupported};

impl Cursor<'_> {
    /// Parses a CREATE statement.
    pub(super) fn create(&mut self) -> SqlResult<Statement> {
        self.expect_word("CREATE")?;
        if self.eat_word("BUCKET") {
            return self.create_bucket();
        }
        let primary = self.eat_word("PRIMARY");
        if self.eat_word("INDEX") {
            return self.create_index(primary);
        }
        if self.is("UNIQUE") {
            let hint = "use CREATE INDEX: an index follows its source and cannot refuse a document";
            return Err(self.error_at_next(unsupported("unique indexes are not supported", hint)));
        }
        if self.eat_word("USER") {
            return self.create_user();
        }
        self.refuse_role()?;
        if ["TABLE", "VIEW", "TEMP", "TEMPORARY", "FUNCTION", "SCHEMA", "TYPE"]
            .iter()
            .any(|word| self.is(word))
        {
            let hint = "use CREATE BUCKET or CREATE INDEX";
            return Err(
                self.error_at_next(unsupported("only buckets and indexes can be created", hint))
            );
        }
        Err(self.expected("BUCKET, INDEX, PRIMARY INDEX or USER"))
    }

    /// Parses an optional `IF NOT EXISTS`.
    fn if_not_exists(&mut self) -> SqlResult<bool> {
        let found = self.eat_word("IF");
        if found {
            self.expect_words(&["NOT", "EXISTS"])?;
        }
        Ok(found)
    }

    fn create_bucket(&mut self) -> SqlResult<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.new_name("the name of a bucket")?;
        let source = match self.eat_word("FROM") {
            true if self.eat_word("FILES") => return self.create_data_set(name, if_not_exists),
            true if self.eat_word("PUSH") => SourceKind::Push,
            true => return Err(self.expected("PUSH or FILES")),
            false => SourceKind::Embedded,
        };
        let (mut vbuckets, mut projectors, mut copies) = (None, None, None);
        for option in self.with_options()? {
            match option.name.as_str() {
                "vbuckets" => vbuckets = Some(option.integer(1, VBUCKETS_MAX.into())? as u16),
                "projectors" => projectors = Some(option.integer(1, VBUCKETS_MAX.into())? as u16),
                "copies" => copies = Some(option.integer(1, COPIES_MAX.into())? as u8),
                _ => return Err(option.unknown_error("vbuckets, projectors and copies")),
            }
        }
        let bucket = CreateBucket { name, if_not_exists, source, vbuckets, projectors, copies };
        Ok(Statement::CreateBucket(bucket))
    }

    fn create_index(&mut self, primary: bool) -> SqlResult<Statement> {
        let start = self.statement_start;
        if self.is("CONCURRENTLY") {
            let hint = "omit it: a build never blocks writes";
            return Err(self.error_at_next(unsupported("CONCURRENTLY is not supported", hint)));
        }
        let if_not_exists = self.if_not_exists()?;
        let name = self.new_name("the name of the index")?;
        self.expect_word("ON")?;
        let bucket = self.object_name("the name of a bucket")?;
        if self.is("USING") {
            let hint = "omit it: all indexes are ordered";
            return Err(self.error_at_next(unsupported("USING is not supported", hint)));
        }
        let keys = match (primary, self.peek() == &Token::LParen) {
            (false, _) => self.list(Self::key_item)?,
            (true, false) => Vec::new(),
            (true, true) => return Err(self.expected("no keys after PRIMARY INDEX")),
        };
        let include = match self.eat_word("INCLUDE") {
            true => self.list(Self::text_expr)?,
            false => Vec::new(),
        };
        self.check_columns(&keys, &include)?;
        let mut index = CreateIndex {
            name,
            if_not_exists,
            primary,
            bucket,
            keys,
            include,
            predicate: None,
            partition: None,
            slices: None,
            replicas: None,
            separate_included_columns: false,
            included_kb_max: None,
            compression: Compression::None,
            slice_bytes_max: None,
            defer_build: false,
            sql: String::new(),
        };
        self.index_clauses(&mut index)?;
        index.sql = self.text_from(start).to_owned();
        Ok(Statement::CreateIndex(index))
    }

    /// Parses `WHERE`, `PARTITION BY` and `WITH` in this order, each at most once.
    fn index_clauses(&mut self, index: &mut CreateIndex) -> SqlResult<()> {
        if self.eat_word("WHERE") {
            index.predicate = Some(self.index_condition()?);
        }
        if self.eat_words(&["PARTITION", "BY"]) {
            index.partition = self.partition()?;
        }
        for option in self.with_options()? {
            match option.name.as_str() {
                "slices" => index.slices = Some(option.integer(1, SLICES_MAX.into())? as u16),
                "replicas" => index.replicas = Some(option.integer(0, REPLICAS_MAX.into())? as u8),
                "separate_included_columns" => {
                    index.separate_included_columns = option.boolean()?;
                }
                "include_apart" => return Err(option.renamed_error("separate_included_columns")),
                "included_kb_max" => {
                    let included_kb_max = option.integer(1, INCLUDED_KB_MAX.into())?;
                    index.included_kb_max = Some(included_kb_max as u16);
                }
                "compression" => index.compression = option.one_of(&Compression::NAMES)?,
                "slice_bytes_max" => index.slice_bytes_max = Some(option.bytes()?),
                "defer_build" => index.defer_build = option.boolean()?,
                _ => {
                    let there_are = "slices, replicas, separate_included_columns, included_kb_max, \
                                     compression, slice_bytes_max and defer_build";
                    return Err(option.unknown_error(there_are));
                }
            }
        }
        Ok(())
    }

    /// Parses the condition after `WHERE`.
    pub(super) fn index_condition(&mut self) -> SqlResult<Expr> {
        let place = self.expected("a condition");
        let predicate = self.expr()?;
        refuse_inside(&predicate, &place)?;
        Ok(predicate)
    }

    /// Parses `HASH (…)` or `RANGE (…)` after `PARTITION BY`. Returns `None` for the hash of the
    /// document's id.
    pub(super) fn partition(&mut self) -> SqlResult<Option<Partition>> {
        if self.eat_word("RANGE") {
            return self.range_partition().map(Some);
        }
        if !self.eat_word("HASH") {
            return Err(self.expected("HASH or RANGE"));
        }
        let place = self.expected("an expression");
        let exprs = self.list(Self::expr)?;
        exprs.iter().try_for_each(|expr| refuse_in_partition(expr, &place))?;
        Ok(Some(exprs).filter(|exprs| exprs[..] != [Expr::DocumentId]).map(Partition::Hash))
    }

    /// Parses `(expr) [SPLIT AT (value, …)]`.
    fn range_partition(&mut self) -> SqlResult<Partition> {
        self.expect(&Token::LParen)?;
        let place = self.expected("an expression");
        let expr = self.expr()?;
        refuse_in_partition(&expr, &place)?;
        if self.peek() == &Token::Comma {
            let hint = "an index is divided by the ranges of one expression";
            return Err(self.error_at_next(unsupported("several expressions after RANGE", hint)));
        }
        self.expect(&Token::RParen)?;
        let points = match self.eat_words(&["SPLIT", "AT"]) {
            true => self.list(Self::split_point)?,
            false => Vec::new(),
        };
        Ok(Partition::Range { expr, points })
    }

    /// Parses a split point, which must be a constant.
    fn split_point(&mut self) -> SqlResult<Expr> {
        let place = self.expected("a number, a text, true or false");
        let point = self.expr()?;
        let varies = point
            .any(&mut |expr| matches!(expr, Expr::Path(_) | Expr::Column(_) | Expr::DocumentId));
        refuse_inside(&point, &place)?;
        if varies { Err(place) } else { Ok(point) }
    }

    /// Parses a key part of an index.
    pub(super) fn key_item(&mut self) -> SqlResult<KeyItem> {
        let place = self.expected("an expression");
        let key = self.raw_text_expr()?;
        match &key.expr {
            Expr::Unnest(inner) => refuse_inside(inner, &place)?,
            expr => refuse_inside(expr, &place)?,
        }
        let descending = match self.eat_word("ASC") {
            true => false,
            false => self.eat_word("DESC"),
        };
        if self.is("NULLS") {
            let hint = "MISSING and NULL come first in an ascending part, last in a descending one";
            return Err(
                self.error_at_next(unsupported("NULLS FIRST and LAST cannot be chosen", hint))
            );
        }
        let include_missing = self.eat_words(&["INCLUDE", "MISSING"]);
        Ok(KeyItem { key, descending, include_missing })
    }

    /// Parses an expression and remembers its text.
    pub(super) fn text_expr(&mut self) -> SqlResult<TextExpr> {
        let place = self.expected("an expression");
        let item = self.raw_text_expr()?;
        refuse_inside(&item.expr, &place)?;
        Ok(item)
    }

    /// Parses an expression with its text, without checks.
    fn raw_text_expr(&mut self) -> SqlResult<TextExpr> {
        let start = self.offset();
        let expr = self.expr()?;
        let text = self.text_from(start).to_owned();
        Ok(TextExpr { expr, text })
    }

    /// Returns an error if an index has too many columns or several array parts.
    fn check_columns(&self, keys: &[KeyItem], include: &[TextExpr]) -> SqlResult<()> {
        let columns = keys.len() + include.len();
        if columns > COLUMNS_MAX {
            let message = format!("the index has {columns} columns; the limit is {COLUMNS_MAX}");
            return Err(self.error_at_next(Error::new(ErrorCode::OverLimit, message)));
        }
        let arrays = keys.iter().filter(|item| matches!(item.key.expr, Expr::Unnest(_))).count();
        if arrays > 1 {
            let hint = "create one index for each array";
            return Err(
                self.error_at_next(unsupported("an index cannot have more than one UNNEST", hint))
            );
        }
        Ok(())
    }

    /// Parses a DROP statement.
    pub(super) fn drop_object(&mut self) -> SqlResult<Statement> {
        self.expect_word("DROP")?;
        if self.eat_word("USER") {
            return self.drop_user();
        }
        self.refuse_role()?;
        let bucket = self.eat_word("BUCKET");
        if !bucket && !self.eat_word("INDEX") {
            return Err(self.expected("BUCKET, INDEX or USER"));
        }
        // Alone it may be the name of an index.
        if self.is("CONCURRENTLY") && matches!(self.peek_nth(1), Token::Word(_)) {
            let hint = "omit it: DROP INDEX never blocks writes";
            return Err(self.error_at_next(unsupported("CONCURRENTLY is not supported", hint)));
        }
        let if_exists = self.eat_word("IF");
        if if_exists {
            self.expect_word("EXISTS")?;
        }
        let name = self.object_name("the name of a bucket or an index")?;
        let restrict = self.eat_word("RESTRICT");
        let _ = !restrict && self.eat_word("CASCADE");
        Ok(match bucket {
            true => Statement::DropBucket { name, if_exists, restrict },
            // No other object depends on an index.
            false => Statement::DropIndex { name, if_exists },
        })
    }

    /// Parses a BUILD INDEX statement.
    pub(super) fn build(&mut self) -> SqlResult<Statement> {
        self.expect_words(&["BUILD", "INDEX", "ON"])?;
        let bucket = self.object_name("the name of a bucket")?;
        let indexes = self.list(|cursor| cursor.object_name("the name of an index"))?;
        Ok(Statement::BuildIndex { bucket, indexes })
    }
}

/// Returns an error for an expression by which an index cannot be partitioned.
fn refuse_in_partition(expr: &Expr, place: &SqlError) -> SqlResult<()> {
    if expr.any(&mut |e| matches!(e, Expr::Unnest(_))) {
        let what = "an index cannot be partitioned by the elements of an array, of which a document has many";
        let hint =
            "partition by an expression with one value for each document, or omit PARTITION BY";
        return Err(SqlError { error: unsupported(what, hint), position: place.position });
    }
    refuse_inside(expr, place)
}

/// Returns an error for parameters, because a definition exists longer than its statement, and
/// for UNNEST unless it is a complete key part.
fn refuse_inside(expr: &Expr, place: &SqlError) -> SqlResult<()> {
    let error = match () {
        () if expr.any(&mut |e| matches!(e, Expr::Parameter(_))) => unsupported(
            "an index definition takes no parameters",
            "write the value into the statement",
        ),
        () if expr.any(&mut |e| matches!(e, Expr::Unnest(_))) => {
            let hint = "use UNNEST(path) as a key part of its own";
            unsupported("UNNEST inside an expression is not supported", hint)
        }
        () => return Ok(()),
    };
    Err(SqlError { error, position: place.position })
}
