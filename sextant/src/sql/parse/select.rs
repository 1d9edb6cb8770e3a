//! Parses `SELECT` and `EXPLAIN`.

use proto::expr::aggregate::AggregateFunction;
use proto::expr::{ColumnType, Expr};
use proto::{Error, ErrorCode};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::expr::is_aggregate;
use crate::sql::ast::{OrderItem, Select, SelectExpr, SelectItem, Statement};
use crate::sql::error::{SqlError, SqlResult, no_relation, unsupported};
use crate::sql::limits;

/// The functions of the session that drivers and psql call when they connect or reset a session.
const SESSION_FUNCTIONS: [&str; 11] = [
    "version",
    "current_schema",
    "current_database",
    "current_catalog",
    "current_user",
    "session_user",
    "user",
    "pg_backend_pid",
    "current_setting",
    "set_config",
    "pg_advisory_unlock_all",
];

/// The functions of the session that SQL allows without parentheses.
const BARE_FUNCTIONS: [&str; 5] =
    ["current_schema", "current_catalog", "current_user", "session_user", "user"];

impl Cursor<'_> {
    /// Parses `SELECT …`.
    pub(super) fn select(&mut self) -> SqlResult<Select> {
        if self.reads_catalogue() {
            return Err(self.error_at_next(unsupported(
                "PostgreSQL's catalogue (pg_catalog, information_schema) is not supported",
                "use SHOW BUCKETS, SHOW INDEXES, SHOW NODES and SHOW SLICES",
            )));
        }
        self.expect_word("SELECT")?;
        let distinct = self.eat_word("DISTINCT");
        if distinct && self.is("ON") {
            return Err(self.error_at_next(unsupported(
                "DISTINCT ON is not supported",
                "use DISTINCT over the leading key columns of an index",
            )));
        }
        if !distinct {
            self.eat_word("ALL");
        }
        let items_at = self.error_at_next(Error::new(ErrorCode::Unknown, ""));
        let mut qualifiers = Vec::new();
        let items = self.select_items(&mut qualifiers)?;
        let (from, alias) = match self.eat_word("FROM") {
            true => self.source().map(|(name, alias)| (Some(name), alias))?,
            false => (None, None),
        };
        let relation = alias.as_ref().or(from.as_ref());
        if let Some(unknown) = qualifiers.iter().find(|name| Some(*name) != relation) {
            return Err(SqlError { error: no_relation(unknown), ..items_at });
        }
        let filter = match self.eat_word("WHERE") {
            true => Some(self.expr()?),
            false => None,
        };
        self.refuse_clauses()?;
        let order_by = match self.eat_words(&["ORDER", "BY"]) {
            true => self.order_items()?,
            false => Vec::new(),
        };
        let (limit, offset) = self.limit_offset()?;
        self.refuse_clauses()?;
        Ok(Select { distinct, items, from, alias, filter, order_by, limit, offset })
    }

    /// Parses `EXPLAIN SELECT …` and `EXPLAIN REBALANCE`.
    pub(super) fn explain(&mut self) -> SqlResult<Statement> {
        self.expect_word("EXPLAIN")?;
        if self.is("REBALANCE") {
            return self.rebalance_index().map(Statement::ExplainRebalance);
        }
        if !self.is("SELECT") {
            let error =
                unsupported("EXPLAIN takes a SELECT and no options", "write EXPLAIN SELECT …");
            return Err(self.error_at_next(error));
        }
        Ok(Statement::Explain(self.select()?))
    }

    /// Parses the select list. Adds the `t` of each `t.*` to `qualifiers`.
    fn select_items(&mut self, qualifiers: &mut Vec<String>) -> SqlResult<Vec<SelectItem>> {
        let mut items = Vec::new();
        loop {
            let is_star = self.at_identifier()
                && self.peek_nth(1) == &Token::Period
                && self.peek_nth(2) == &Token::Mul;
            if is_star {
                qualifiers.push(self.name("the name of an index or a bucket")?);
                self.advance();
            }
            items.push(self.select_item()?);
            // The check precedes the parsing of the rest, which may have megabytes.
            limits::check_columns(items.len()).map_err(|error| self.error_at_next(error))?;
            if !self.eat(&Token::Comma) {
                return Ok(items);
            }
        }
    }

    pub(super) fn select_item(&mut self) -> SqlResult<SelectItem> {
        if self.eat(&Token::Mul) {
            return Ok(SelectItem::Star);
        }
        let expr = self.select_expr()?;
        let alias = match self.eat_word("AS") || self.at_identifier() {
            true => Some(self.identifier("an alias")?),
            false => None,
        };
        Ok(SelectItem::Expr { expr, alias })
    }

    fn select_expr(&mut self) -> SqlResult<SelectExpr> {
        if let Some(session) = self.session_function()? {
            return Ok(session);
        }
        let aggregate = match self.peek() {
            Token::Word(word) if self.peek_nth(1) == &Token::LParen => {
                Some(word.value.to_lowercase()).filter(|name| is_aggregate(name))
            }
            _ => None,
        };
        let Some(name) = aggregate else { return Ok(SelectExpr::Scalar(self.expr()?)) };
        self.advance();
        self.aggregate(&name)
    }

    /// Parses the arguments of an aggregate function.
    fn aggregate(&mut self, name: &str) -> SqlResult<SelectExpr> {
        let function = match name {
            "count" => AggregateFunction::Count,
            "min" => AggregateFunction::Min,
            "max" => AggregateFunction::Max,
            "sum" => AggregateFunction::Sum,
            _ => AggregateFunction::Avg,
        };
        self.expect(&Token::LParen)?;
        if self.is("DISTINCT") {
            return Err(self.error_at_next(unsupported(
                "DISTINCT inside an aggregate is not supported",
                "SELECT DISTINCT over the leading key columns gives the rows to count",
            )));
        }
        let argument = match self.peek() {
            Token::Mul if function == AggregateFunction::Count => {
                self.advance();
                None
            }
            _ => Some(self.expr()?),
        };
        self.expect(&Token::RParen)?;
        let cast: Option<ColumnType> = match self.eat(&Token::DoubleColon) {
            true => Some(self.column_type()?),
            false => None,
        };
        if ["OVER", "FILTER"].iter().any(|word| self.is(word)) {
            let hint = "put the condition into WHERE";
            return Err(self.error_at_next(unsupported("OVER and FILTER are not supported", hint)));
        }
        Ok(SelectExpr::Aggregate { function, argument, cast })
    }

    /// Parses a function of the session, such as `version()`, `pg_catalog.version()` or
    /// `current_user`; `None` if none follows.
    fn session_function(&mut self) -> SqlResult<Option<SelectExpr>> {
        let at = match self.is("pg_catalog") && self.peek_nth(1) == &Token::Period {
            true => 2,
            false => 0,
        };
        let name = match self.peek_nth(at) {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            _ => return Ok(None),
        };
        let called = self.peek_nth(at + 1) == &Token::LParen;
        let known = SESSION_FUNCTIONS.contains(&name.as_str());
        // A document may have a field `user`, so a word is a function only if the item ends after it.
        let bare = BARE_FUNCTIONS.contains(&name.as_str())
            && matches!(self.peek_nth(at + 1), Token::Comma | Token::SemiColon | Token::EOF);
        if !known || !(called || bare) {
            return Ok(None);
        }
        (0..=at).for_each(|_| self.advance());
        let mut arguments = Vec::new();
        if self.eat(&Token::LParen) && !self.eat(&Token::RParen) {
            arguments.push(self.expr()?);
            while self.eat(&Token::Comma) {
                arguments.push(self.expr()?);
            }
            self.expect(&Token::RParen)?;
        }
        Ok(Some(SelectExpr::Session(name, arguments)))
    }

    /// Parses the name of the index or bucket, and its alias.
    fn source(&mut self) -> SqlResult<(String, Option<String>)> {
        if self.peek() == &Token::LParen {
            let hint = "name an index, or a bucket with WHERE id = …";
            return Err(self.error_at_next(unsupported("subqueries are not supported", hint)));
        }
        let name = self.object_name("the name of an index or a bucket")?;
        const NO_ALIAS: [&str; 10] = [
            "WINDOW", "INTO", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "LATERAL",
            "JOIN",
        ];
        let has_alias = self.eat_word("AS")
            || (self.at_identifier() && !NO_ALIAS.iter().any(|word| self.is(word)));
        let alias = if has_alias { Some(self.name("an alias")?) } else { None };
        const JOINS: [&str; 8] =
            ["JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "LATERAL"];
        if self.peek() == &Token::Comma || JOINS.iter().any(|word| self.is(word)) {
            return Err(self.error_at_next(unsupported(
                "joins are not supported: a SELECT reads one index",
                "INCLUDE what the query needs in the index, or join in the client",
            )));
        }
        Ok((name, alias))
    }

    fn order_items(&mut self) -> SqlResult<Vec<OrderItem>> {
        let mut items = Vec::new();
        loop {
            let expr = self.expr()?;
            let descending = match self.eat_word("ASC") {
                true => false,
                false => self.eat_word("DESC"),
            };
            let nulls_first = match () {
                () if self.eat_words(&["NULLS", "FIRST"]) => Some(true),
                () if self.eat_words(&["NULLS", "LAST"]) => Some(false),
                () => None,
            };
            items.push(OrderItem { expr, descending, nulls_first });
            if !self.eat(&Token::Comma) {
                return Ok(items);
            }
        }
    }

    /// Parses `LIMIT` and `OFFSET` in either order. `LIMIT ALL` means no limit.
    fn limit_offset(&mut self) -> SqlResult<(Option<Expr>, Option<Expr>)> {
        let (mut limit, mut offset) = (None, None);
        loop {
            if limit.is_none() && self.eat_word("LIMIT") {
                if !self.eat_word("ALL") {
                    limit = Some(self.expr()?);
                }
            } else if offset.is_none() && self.eat_word("OFFSET") {
                offset = Some(self.expr()?);
                let _ = self.eat_word("ROWS") || self.eat_word("ROW");
            } else {
                return Ok((limit, offset));
            }
        }
    }

    /// Returns an error if a clause follows that SQL has and Sextant does not have.
    fn refuse_clauses(&self) -> SqlResult<()> {
        const CLAUSES: [(&str, &str); 9] = [
            (
                "GROUP",
                "DISTINCT over the leading key columns, or aggregates over one range a query",
            ),
            ("HAVING", "put the condition into WHERE"),
            ("WINDOW", "compute over the ordered rows in the client"),
            ("UNION", "run the statements one after the other, in BEGIN READ ONLY … COMMIT"),
            ("INTERSECT", "one index over both expressions"),
            ("EXCEPT", "put the condition into WHERE"),
            ("FETCH", "LIMIT n"),
            ("FOR", "reads take no locks; leave it out"),
            ("INTO", "COPY (SELECT …) TO STDOUT, and COPY … FROM STDIN"),
        ];
        match CLAUSES.iter().find(|(word, _)| self.is(word)) {
            Some((word, hint)) => Err(self.error_at_next(unsupported(
                format!("{word} is not supported"),
                format!("what works: {hint}"),
            ))),
            None => Ok(()),
        }
    }
}
