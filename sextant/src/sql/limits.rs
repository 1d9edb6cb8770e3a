//! Limits of statements. They are checked before the text is parsed. The parser and all later
//! steps are recursive, so an expression with many levels would overflow the stack when it is
//! built, cloned or dropped.

use proto::{Error, ErrorCode, Result};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The maximum length of a query text, in bytes. A token takes some 90 bytes of memory, so in the
/// worst case a text takes about 400 MB while it is parsed. COPY, which is meant for bulk data,
/// does not have this limit.
pub const STATEMENT_BYTES_MAX: usize = 4 << 20;

/// The maximum number of operators in a statement. Each operator may add a level to the
/// expression tree. In a debug build, 500 levels take a quarter of a thread's stack.
pub const OPERATORS_MAX: usize = 500;

/// The maximum depth of nested parentheses. Each pair of parentheses may also add a level to the
/// expression tree.
pub const NESTING_MAX: usize = 200;

/// The maximum number of columns in a result, the same as in PostgreSQL.
pub const COLUMNS_MAX: usize = 1664;

/// Returns an error if a result has too many columns.
pub fn check_columns(columns: usize) -> Result<()> {
    if columns <= COLUMNS_MAX {
        return Ok(());
    }
    let message = format!("the select list has more than {COLUMNS_MAX} columns");
    Err(Error::new(ErrorCode::TooManyColumns, message)
        .with_hint("select fewer columns, or send several statements"))
}

/// The maximum number of parameters in a statement: the protocol counts them with 16 bits.
pub const PARAMETERS_MAX: u16 = u16::MAX;

/// Returns an error if a query text is too long.
pub fn check_length(bytes: usize) -> Result<()> {
    if bytes <= STATEMENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the query text has {bytes} bytes; the limit is {STATEMENT_BYTES_MAX}");
    Err(Error::new(ErrorCode::OverLimit, message)
        .with_hint("load documents with COPY … FROM STDIN"))
}

/// Checks the number of operators and the nesting of each statement in a query text. An error
/// comes with the number of the token that exceeds a limit.
pub fn check_tokens(tokens: &[TokenWithSpan]) -> std::result::Result<(), (Error, usize)> {
    let (mut operators, mut nesting) = (0, 0usize);
    let mut previous = &Token::SemiColon;
    for (at, TokenWithSpan { token, .. }) in tokens.iter().enumerate() {
        match token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => (operators, nesting) = (0, 0),
            Token::LParen | Token::LBracket => nesting += 1,
            Token::RParen | Token::RBracket => nesting = nesting.saturating_sub(1),
            _ if is_operator(token, previous) => operators += 1,
            _ => {}
        }
        let too_much = match () {
            () if operators > OPERATORS_MAX => format!("more than {OPERATORS_MAX} operators"),
            () if nesting > NESTING_MAX => format!("more than {NESTING_MAX} nested parentheses"),
            () => {
                previous = token;
                continue;
            }
        };
        let error = Error::new(ErrorCode::TooComplex, format!("the statement has {too_much}"));
        return Err((error.with_hint("write lists as IN (…), or send several statements"), at));
    }
    Ok(())
}

/// Returns true if a token adds a level to an expression. The sign of a number does not, because
/// the parser merges it with the number.
fn is_operator(token: &Token, previous: &Token) -> bool {
    match token {
        Token::Minus | Token::Plus => !matches!(previous, Token::LParen | Token::Comma),
        Token::Eq
        | Token::Neq
        | Token::Lt
        | Token::Gt
        | Token::LtEq
        | Token::GtEq
        | Token::Mul
        | Token::Div
        | Token::Mod
        | Token::StringConcat
        | Token::DoubleColon => true,
        Token::Word(word) if word.quote_style.is_none() => {
            const WORDS: [&str; 7] = ["AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS"];
            !matches!(previous, Token::Period)
                && WORDS.iter().any(|operator| word.value.eq_ignore_ascii_case(operator))
        }
        _ => false,
    }
}
