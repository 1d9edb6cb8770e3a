//! The cursor from which the grammar reads: `sqlparser`'s [`Parser`] over the tokens of a query
//! text. Words are compared by their text, because most of Sextant's words are not keywords of
//! SQL. Errors contain the position in the text.

use proto::{Error, ErrorCode};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::sql::dialect::SextantDialect;
use crate::sql::error::{SqlError, SqlResult, unsupported};
use crate::sql::limits;

/// The maximum depth of the grammar's recursion. `limits` has already checked the operators and
/// the nesting; this second limit is for cases that those checks do not count.
const RECURSION_MAX: usize = limits::OPERATORS_MAX + limits::NESTING_MAX;

/// The words that begin the next clause of a statement. Without quotes they cannot be a path or
/// an alias.
const RESERVED: [&str; 41] = [
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COLLATE",
    "CROSS",
    "DESC",
    "DISTINCT",
    "ELSE",
    "END",
    "EXCEPT",
    "FALSE",
    "FETCH",
    "FOR",
    "FROM",
    "GROUP",
    "HAVING",
    "IN",
    "INCLUDE",
    "INTERSECT",
    "IS",
    "JOIN",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "PARTITION",
    "SELECT",
    "THEN",
    "TRUE",
    "UNION",
    "WHERE",
    "WITH",
];

/// A position in the tokens of a query text.
pub(super) struct Cursor<'a> {
    parser: Parser<'a>,
    source: &'a str,
    /// The last location that was converted to an offset. The next conversion continues from it,
    /// so that all conversions along the text together take linear time.
    known: (Location, usize),
    depth: usize,
    /// The highest parameter number in the present statement.
    pub(super) parameters: u16,
    /// The offset of the present statement in the text, in bytes.
    pub(super) statement_start: usize,
    /// True in a statement that may contain a secret. Its errors then quote nothing of the text.
    pub(super) has_secrets: bool,
}

impl<'a> Cursor<'a> {
    /// Tokenizes a query text and checks its limits.
    pub(super) fn new(source: &'a str) -> SqlResult<Self> {
        limits::check_length(source.len())?;
        let tokens =
            Tokenizer::new(&SextantDialect, source).tokenize_with_location().map_err(|error| {
                SqlError {
                    error: Error::new(ErrorCode::Syntax, error.message.trim()),
                    position: Some(character_of(source, error.location)),
                }
            })?;
        limits::check_tokens(&tokens).map_err(|(error, at)| SqlError {
            error,
            position: Some(character_of(source, tokens[at].span.start)),
        })?;
        Ok(Self {
            parser: Parser::new(&SextantDialect).with_tokens_with_locations(tokens),
            source,
            known: (Location { line: 1, column: 1 }, 0),
            depth: 0,
            parameters: 0,
            statement_start: 0,
            has_secrets: false,
        })
    }

    /// Returns the next token.
    pub(super) fn peek(&self) -> &Token {
        &self.parser.peek_token_ref().token
    }

    /// Returns the token after the next `n` tokens.
    pub(super) fn peek_nth(&self, n: usize) -> &Token {
        &self.parser.peek_nth_token_ref(n).token
    }

    /// Returns the remaining tokens of the present statement.
    pub(super) fn rest_of_statement(&self) -> impl Iterator<Item = Token> + '_ {
        (0..)
            .map(|n| self.parser.peek_nth_token_no_skip(n).token)
            .take_while(|token| !matches!(token, Token::SemiColon | Token::EOF))
    }

    /// Returns the index of the next token.
    pub(super) fn place(&self) -> usize {
        self.parser.index()
    }

    /// Returns the tokens from position `place` up to the last consumed token.
    pub(super) fn tokens_from(&self, place: usize) -> impl Iterator<Item = &Token> {
        (place..self.parser.index()).map(|place| &self.parser.token_at(place).token)
    }

    /// Skips the next token.
    pub(super) fn advance(&mut self) {
        self.parser.advance_token();
    }

    /// Consumes the next token if it equals `token`. Returns true if it does.
    pub(super) fn eat(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.advance();
        }
        found
    }

    /// Returns true if the token after the next `n` tokens is this unquoted word.
    pub(super) fn nth_is(&self, n: usize, word: &str) -> bool {
        is_word(self.peek_nth(n), word)
    }

    /// Returns true if the next token is this unquoted word.
    pub(super) fn is(&self, word: &str) -> bool {
        is_word(self.peek(), word)
    }

    /// Consumes the next token if it is this word. Returns true if it is.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes the next tokens if they are these words, either all or none. Returns true if they
    /// are.
    pub(super) fn eat_words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(n, word)| self.nth_is(n, word));
        if found {
            words.iter().for_each(|_| self.advance());
        }
        found
    }

    /// Consumes the next token; an error if it is not `token`.
    pub(super) fn expect(&mut self, token: &Token) -> SqlResult<()> {
        match self.eat(token) {
            true => Ok(()),
            false => Err(self.expected(&format!("{token}"))),
        }
    }

    /// Consumes the next word; an error if it is not `word`.
    pub(super) fn expect_word(&mut self, word: &str) -> SqlResult<()> {
        match self.eat_word(word) {
            true => Ok(()),
            false => Err(self.expected(word)),
        }
    }

    /// Consumes a sequence of words; an error if the next tokens are not these words.
    pub(super) fn expect_words(&mut self, words: &[&str]) -> SqlResult<()> {
        words.iter().try_for_each(|word| self.expect_word(word))
    }

    /// Returns true at the end of the statement.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.peek(), Token::SemiColon | Token::EOF)
    }

    /// Returns true if the next token is a word that may be a path or an alias.
    pub(super) fn at_identifier(&self) -> bool {
        match self.peek() {
            Token::Word(word) => word.quote_style.is_some() || !is_reserved(&word.value),
            _ => false,
        }
    }

    /// Consumes a word that is a step of a path or an alias. Returns it as written.
    pub(super) fn identifier(&mut self, what: &str) -> SqlResult<String> {
        match self.peek() {
            Token::Word(word) => {
                let value = word.value.clone();
                self.advance();
                Ok(value)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Consumes a name and returns it, in lower case unless it is quoted.
    pub(super) fn name(&mut self, what: &str) -> SqlResult<String> {
        if !self.at_identifier() {
            return Err(self.expected(what));
        }
        let folded = matches!(self.peek(), Token::Word(word) if word.quote_style.is_none());
        let name = self.identifier(what)?;
        Ok(if folded { name.to_lowercase() } else { name })
    }

    /// Consumes this name, quoted or not; an error for another token.
    pub(super) fn expect_name(&mut self, name: &str) -> SqlResult<()> {
        let found = match self.peek() {
            Token::Word(word) if word.quote_style.is_some() => word.value == name,
            _ => self.is(name),
        };
        if !found {
            return Err(self.expected(name));
        }
        self.advance();
        Ok(())
    }

    /// Consumes the name of a new bucket or index.
    pub(super) fn new_name(&mut self, what: &str) -> SqlResult<String> {
        let here = self.error_at_next(Error::new(
            ErrorCode::ReservedName,
            "names that begin with pg_, and information_schema, stand for PostgreSQL's catalogue",
        ));
        let name = self.object_name(what)?;
        match is_reserved_name(&name) {
            true => Err(SqlError { error: here.error.with_hint("choose another name"), ..here }),
            false => Ok(name),
        }
    }

    /// Consumes the name of a bucket or an index, with an optional prefix `public.`.
    pub(super) fn object_name(&mut self, what: &str) -> SqlResult<String> {
        let is_public = match self.peek() {
            Token::Word(word) if word.quote_style.is_some() => word.value == "public",
            _ => self.is("public"),
        };
        if is_public && self.peek_nth(1) == &Token::Period {
            self.advance();
            self.advance();
        }
        let name = self.name(what)?;
        match self.peek() {
            Token::Period => Err(self.error_at_next(unsupported(
                format!("there is no schema \"{name}\""),
                "buckets and indexes have no schemas: write the name alone",
            ))),
            _ => Ok(name),
        }
    }

    /// Parses a list in parentheses with at least one item.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<Vec<T>> {
        self.expect(&Token::LParen)?;
        let mut items = vec![item(self)?];
        while self.eat(&Token::Comma) {
            items.push(item(self)?);
        }
        self.expect(&Token::RParen)?;
        Ok(items)
    }

    /// Consumes a string literal in any of PostgreSQL's notations; `None` for another token.
    pub(super) fn eat_string(&mut self) -> Option<String> {
        let text = match self.peek() {
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::UnicodeStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(text) => text.value.clone(),
            _ => return None,
        };
        self.advance();
        Some(text)
    }

    /// Consumes an integer without a sign.
    pub(super) fn integer(&mut self, what: &str) -> SqlResult<u64> {
        let value = match self.peek() {
            Token::Number(text, _) => text.parse().ok(),
            _ => None,
        };
        let value = value.ok_or_else(|| self.expected(what))?;
        self.advance();
        Ok(value)
    }

    /// Parses a nested construct. Returns an error if the recursion is too deep.
    pub(super) fn deeper<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        if self.depth == RECURSION_MAX {
            return Err(self.error_at_next(Error::new(
                ErrorCode::TooComplex,
                format!("an expression has more than {RECURSION_MAX} levels"),
            )));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Returns the syntax error for the next token.
    pub(super) fn expected(&self, what: &str) -> SqlError {
        let message = match self.peek() {
            Token::EOF => format!("syntax error at the end of the statement: expected {what}"),
            _ if self.has_secrets => format!("syntax error: expected {what}"),
            found => {
                let found: String = found.to_string().chars().take(60).collect();
                format!("syntax error at or near {found}: expected {what}")
            }
        };
        self.error_at_next(Error::new(ErrorCode::Syntax, message))
    }

    /// Returns an error at the position of the next token.
    pub(super) fn error_at_next(&self, error: Error) -> SqlError {
        let position = match self.parser.peek_token_ref() {
            TokenWithSpan { token: Token::EOF, .. } => self.source.chars().count() as u32 + 1,
            token => character_of(self.source, token.span.start),
        };
        SqlError { error, position: Some(position) }
    }

    /// Returns the byte offset of the next token in the text.
    pub(super) fn offset(&mut self) -> usize {
        match self.parser.peek_token_ref() {
            TokenWithSpan { token: Token::EOF, .. } => self.source.len(),
            token => {
                let start = token.span.start;
                self.offset_of(start)
            }
        }
    }

    /// Returns the text from an offset to the end of the last consumed token.
    pub(super) fn text_from(&mut self, start: usize) -> &'a str {
        let end = self.offset();
        self.source[start..end.max(start)].trim_end()
    }

    /// Returns the byte offset of a location.
    fn offset_of(&mut self, location: Location) -> usize {
        let (from, mut offset) = self.known;
        if (location.line, location.column) < (from.line, from.column) {
            offset = 0;
        }
        let mut at = if offset == 0 { Location { line: 1, column: 1 } } else { from };
        for ch in self.source[offset..].chars() {
            if (at.line, at.column) >= (location.line, location.column) {
                break;
            }
            at = next_location(at, ch);
            offset += ch.len_utf8();
        }
        self.known = (at, offset);
        offset
    }

    /// Parses a node's number or address.
    pub(super) fn node(&mut self) -> SqlResult<String> {
        match self.eat_string() {
            Some(node) => Ok(node),
            None => Ok(self.integer("a node: its number, or its address in quotes")?.to_string()),
        }
    }
}

fn is_word(token: &Token, word: &str) -> bool {
    match token {
        Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        _ => false,
    }
}

/// Returns true if a query with this name would be taken for one of PostgreSQL's catalogue.
pub(super) fn is_reserved_name(name: &str) -> bool {
    let name = name.to_lowercase();
    name.starts_with("pg_") || name == "information_schema"
}

/// Returns true for a word that begins the next clause of a statement.
fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// Returns the location after the character `ch` at `at`, in the tokenizer's lines and columns.
fn next_location(at: Location, ch: char) -> Location {
    match ch {
        '\n' => Location { line: at.line + 1, column: 1 },
        _ => Location { line: at.line, column: at.column + 1 },
    }
}

/// Returns the number of the character at a location, counted from 1, as PostgreSQL's clients
/// expect it.
fn character_of(source: &str, location: Location) -> u32 {
    let mut at = Location { line: 1, column: 1 };
    let mut number = 1;
    for ch in source.chars() {
        if (at.line, at.column) >= (location.line, location.column) {
            break;
        }
        at = next_location(at, ch);
        number += 1;
    }
    number
}
