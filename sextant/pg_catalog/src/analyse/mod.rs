//! The analyser: from a parsed statement to its typed plan.
//!
//! It resolves names in the order of PostgreSQL: a column of the innermost SELECT first, then of
//! the SELECTs around it. A literal in quotes, a NULL and a parameter have the type `unknown` until
//! their place implies one.

mod coerce;
mod column_names;
mod expr;
mod from;
mod functions;
mod grouping;
mod idents;
mod literals;
mod operators;
mod polymorphic;
mod query;
mod resolve;
mod scope;
mod select;
mod special;
mod subqueries;
mod type_names;

use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};

use self::coerce::Parameters;
use self::scope::{CteScope, Level};
use crate::error::{Error, Result};
use crate::plan::Statement;
use crate::types::oid::Oid;

/// The maximum depth of a statement's grammar. Statements of clients have less than 40; each level
/// costs stack in the parser, the analyser and the executor.
const DEPTH_MAX: usize = 32;

/// The names that are known besides the fixed part of the catalogue.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The name of the database.
    pub database: &'a str,
    /// The schemas in which names without a schema are looked up, after `pg_catalog`.
    pub search_path: &'a [String],
    /// Returns true for a relation of the user with this schema and name: its documents cannot be
    /// read by a statement of this kind.
    pub is_relation: &'a dyn Fn(&str, &str) -> bool,
}

/// Parses the text of one query.
pub fn parse(text: &str) -> Result<ast::Query> {
    let mut parser = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(DEPTH_MAX)
        .try_with_sql(text)
        .map_err(syntax)?;
    let query = parser.parse_query().map_err(syntax)?;
    let _ = parser.consume_token(&sqlparser::tokenizer::Token::SemiColon);
    match parser.peek_token().token {
        sqlparser::tokenizer::Token::EOF => Ok(*query),
        other => {
            let at = parser.peek_token().span.start;
            Err(Error::new("42601", format!("syntax error at or near \"{other}\""))
                .at(at.line, at.column))
        }
    }
}

fn syntax(error: ParserError) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => {
            Error::new("54001", format!("the statement nests deeper than {DEPTH_MAX}"))
        }
        ParserError::ParserError(what) | ParserError::TokenizerError(what) => {
            // The library writes the place into the text.
            let (message, place) = match what.rsplit_once(" at Line: ") {
                Some((message, place)) => (message.to_owned(), line_and_column(place)),
                None => (what, None),
            };
            let error = Error::new("42601", format!("syntax error: {message}"));
            place.map_or(error.clone(), |(line, column)| error.at(line, column))
        }
    }
}

fn line_and_column(place: &str) -> Option<(u64, u64)> {
    let (line, column) = place.split_once(", Column: ")?;
    Some((line.trim().parse().ok()?, column.trim().parse().ok()?))
}

/// Analyses a query. The types are those that the client has declared for the parameters; 0 for none.
pub fn analyse(query: &ast::Query, declared: &[Oid], names: Names<'_>) -> Result<Statement> {
    let mut analyser = Analyser {
        names,
        parameters: Parameters::declared(declared),
        levels: Vec::new(),
        ctes: Vec::new(),
        cte_count: 0,
        lowest: usize::MAX,
        is_volatile: false,
    };
    let mut plan = analyser.query(query)?;
    analyser.fix_unknown(&mut plan)?;
    Ok(Statement {
        query: plan,
        parameters: analyser.parameters.finish(),
        ctes: analyser.cte_count,
        is_volatile: analyser.is_volatile,
    })
}

/// The state of an analysis.
struct Analyser<'a> {
    names: Names<'a>,
    parameters: Parameters,
    /// The SELECTs around the present place, the outermost first.
    levels: Vec<Level>,
    /// The common table expressions that may be named, the innermost last.
    ctes: Vec<CteScope>,
    cte_count: usize,
    /// The outermost level that an expression has used since this was reset: a subquery that uses one
    /// below its own is correlated.
    lowest: usize,
    is_volatile: bool,
}
