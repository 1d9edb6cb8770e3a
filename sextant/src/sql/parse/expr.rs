//! Parses expressions into [`Expr`] by precedence climbing, with PostgreSQL's precedences:
//!
//! `OR` < `AND` < `NOT` < `IS` < `= <> < <= > >=` < `IN BETWEEN LIKE` < `+ -` < `* / %` < sign < `::`
//!
//! A path is a word with any `.name` and `[n]` after it. A sign before a number is part of the number.

use proto::expr::{ArithmeticOp, ColumnType, CompareOp, Expr, Function};
use proto::value::path::Step;
use proto::value::{Number, Value, is_number};
use proto::{Error, ErrorCode};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::sql::error::{SqlResult, unsupported};
use crate::sql::limits;

/// The precedences of operators, weakest first.
mod power {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const IS: u8 = 4;
    pub const COMPARE: u8 = 5;
    pub const RANGE: u8 = 6;
    pub const ADD: u8 = 7;
    pub const MULTIPLY: u8 = 8;
    pub const SIGN: u8 = 9;
    pub const CAST: u8 = 10;
}

const AGGREGATES: [&str; 5] = ["count", "min", "max", "sum", "avg"];

/// Returns true if a function with this name is an aggregate.
pub(super) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

/// Returns the expression of a literal number. The text of the number's value may differ from the
/// written text (`1.50`, or `1.0`, whose value is an integer). The written text is then
/// preserved, as a text with a cast ([`proto::expr::number_of`]).
fn literal_number(text: &str, number: Number) -> Expr {
    let is_integer = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    let (sign, unsigned) = text.split_at(usize::from(text.starts_with('-')));
    let zeros = unsigned.len() - unsigned.trim_start_matches('0').len();
    let whole = match &unsigned[zeros..] {
        "" => "0".to_owned(),
        rest if rest.starts_with(|c: char| c.is_ascii_digit()) => rest.to_owned(),
        rest => format!("0{rest}"),
    };
    let end = if whole.ends_with('.') { "0" } else { "" };
    let spelled = format!("{sign}{whole}{end}");
    let is_as_written = spelled == number.to_string() && (is_integer || number.as_i128().is_none());
    if is_as_written || (is_integer && number.as_i128().is_some()) || !is_number(&spelled) {
        return Expr::Literal(Value::Number(number));
    }
    Expr::Cast(Box::new(Expr::Literal(Value::String(spelled))), ColumnType::Numeric)
}

impl Cursor<'_> {
    /// Parses an expression.
    pub(super) fn expr(&mut self) -> SqlResult<Expr> {
        self.expr_above(0)
    }

    /// Parses an expression whose operators have a higher precedence than `floor`.
    fn expr_above(&mut self, floor: u8) -> SqlResult<Expr> {
        self.deeper(|cursor| {
            let mut left = cursor.prefix()?;
            loop {
                let Some(power) = cursor.infix_power() else { return Ok(left) };
                if power <= floor {
                    return Ok(left);
                }
                left = cursor.infix(left, power)?;
            }
        })
    }

    /// Returns the precedence of the next token; `None` if it is not an operator.
    fn infix_power(&self) -> Option<u8> {
        Some(match self.peek() {
            Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => {
                power::COMPARE
            }
            Token::Plus | Token::Minus => power::ADD,
            Token::Mul | Token::Div | Token::Mod => power::MULTIPLY,
            Token::DoubleColon => power::CAST,
            Token::StringConcat => power::RANGE,
            Token::Word(word) if word.quote_style.is_none() => {
                let negated = self.is("NOT");
                let at = usize::from(negated);
                match () {
                    () if ["IN", "BETWEEN", "LIKE", "ILIKE", "SIMILAR"]
                        .iter()
                        .any(|operator| self.nth_is(at, operator)) =>
                    {
                        power::RANGE
                    }
                    () if negated => return None,
                    () if self.is("OR") => power::OR,
                    () if self.is("AND") => power::AND,
                    () if self.is("IS") => power::IS,
                    () => return None,
                }
            }
            _ => return None,
        })
    }

    /// Parses the rest of an operator's expression, whose left operand is `left`.
    fn infix(&mut self, left: Expr, power: u8) -> SqlResult<Expr> {
        match power {
            power::OR | power::AND => self.connective(left, power),
            power::IS => self.is_test(left),
            power::COMPARE => self.comparison(left),
            power::RANGE => self.range_test(left),
            power::CAST => {
                self.advance();
                Ok(Expr::Cast(Box::new(left), self.column_type()?))
            }
            _ => {
                let operator = match self.peek() {
                    Token::Plus => ArithmeticOp::Add,
                    Token::Minus => ArithmeticOp::Subtract,
                    Token::Mul => ArithmeticOp::Multiply,
                    Token::Div => ArithmeticOp::Divide,
                    _ => ArithmeticOp::Modulo,
                };
                self.advance();
                let right = self.expr_above(power)?;
                Ok(Expr::Arithmetic(operator, Box::new(left), Box::new(right)))
            }
        }
    }

    /// Parses `a AND b AND c` to one `And` of three terms, so that long conditions are not nested.
    fn connective(&mut self, left: Expr, power: u8) -> SqlResult<Expr> {
        let word = if power == power::OR { "OR" } else { "AND" };
        let mut terms = vec![left];
        while self.eat_word(word) {
            terms.push(self.expr_above(power)?);
        }
        Ok(if power == power::OR { Expr::Or(terms) } else { Expr::And(terms) })
    }

    /// Parses the rest of a comparison.
    fn comparison(&mut self, left: Expr) -> SqlResult<Expr> {
        let operator = match self.peek() {
            Token::Eq => CompareOp::Eq,
            Token::Neq => CompareOp::NotEq,
            Token::Lt => CompareOp::Less,
            Token::LtEq => CompareOp::LessEq,
            Token::Gt => CompareOp::Greater,
            _ => CompareOp::GreaterEq,
        };
        self.advance();
        if ["ANY", "ALL", "SOME"].iter().any(|word| self.is(word)) {
            let message = "comparisons with ANY and ALL are not supported";
            return Err(self.error_at_next(unsupported(message, "write a list as IN ($1, $2, …)")));
        }
        let right = self.expr_above(power::COMPARE)?;
        let chained = self.infix_power() == Some(power::COMPARE);
        if chained {
            return Err(self.expected("AND or OR between two comparisons"));
        }
        Ok(Expr::Compare(operator, Box::new(left), Box::new(right)))
    }

    /// Parses the rest of an `IS` test.
    fn is_test(&mut self, left: Expr) -> SqlResult<Expr> {
        self.expect_word("IS")?;
        let negated = self.eat_word("NOT");
        let expr = Box::new(left);
        if self.eat_word("NULL") {
            Ok(Expr::IsNull { expr, negated })
        } else if self.eat_word("MISSING") {
            Ok(Expr::IsMissing { expr, negated })
        } else {
            Err(self.expected("NULL or MISSING"))
        }
    }

    /// Parses `[NOT] IN`, `[NOT] BETWEEN` and `[NOT] LIKE` after the left operand.
    fn range_test(&mut self, left: Expr) -> SqlResult<Expr> {
        if self.peek() == &Token::StringConcat {
            return Err(self
                .error_at_next(unsupported("|| is not supported", "join strings in the client")));
        }
        let negated = self.eat_word("NOT");
        let expr = Box::new(left);
        if self.eat_word("IN") {
            if self.nth_is(1, "SELECT") {
                return Err(self.error_at_next(unsupported(
                    "subqueries are not supported",
                    "list the values",
                )));
            }
            Ok(Expr::In { expr, list: self.list(Self::expr)?.into(), negated })
        } else if self.eat_word("BETWEEN") {
            let low = Box::new(self.expr_above(power::RANGE)?);
            self.expect_word("AND")?;
            let high = Box::new(self.expr_above(power::RANGE)?);
            Ok(Expr::Between { expr, low, high, negated })
        } else if self.eat_word("LIKE") {
            let pattern = Box::new(self.expr_above(power::RANGE)?);
            if self.is("ESCAPE") {
                let hint = "the escape character is \\";
                return Err(self.error_at_next(unsupported("ESCAPE is not supported", hint)));
            }
            Ok(Expr::Like { expr, pattern, negated })
        } else {
            let hint = "index lower(…) and compare with LIKE 'x%'";
            Err(self.error_at_next(unsupported("only LIKE matches patterns", hint)))
        }
    }

    /// Parses an operand with the signs before it, or a term after `NOT`.
    fn prefix(&mut self) -> SqlResult<Expr> {
        if let Some(text) = self.eat_string() {
            return Ok(Expr::Literal(Value::String(text)));
        }
        match self.peek() {
            Token::Number(..) => self.number(""),
            Token::Minus => {
                self.advance();
                match self.peek() {
                    Token::Number(..) => self.number("-"),
                    _ => Ok(Expr::Negate(Box::new(self.expr_above(power::SIGN)?))),
                }
            }
            Token::Plus => {
                self.advance();
                self.expr_above(power::SIGN)
            }
            Token::LParen => {
                self.advance();
                if self.is("SELECT") {
                    let hint = "run the inner statement first";
                    return Err(
                        self.error_at_next(unsupported("subqueries are not supported", hint))
                    );
                }
                let inner = self.expr()?;
                self.expect(&Token::RParen)?;
                Ok(inner)
            }
            Token::Placeholder(_) => self.parameter(),
            Token::Word(_) => self.word(),
            _ => Err(self.expected("an expression")),
        }
    }

    /// Parses an operand that begins with a word.
    fn word(&mut self) -> SqlResult<Expr> {
        let literal = match () {
            () if self.is("NULL") => Some(Value::Null),
            () if self.is("TRUE") => Some(Value::Bool(true)),
            () if self.is("FALSE") => Some(Value::Bool(false)),
            () => None,
        };
        if let Some(literal) = literal {
            self.advance();
            return Ok(Expr::Literal(literal));
        }
        if self.eat_word("NOT") {
            return Ok(Expr::Not(Box::new(self.expr_above(power::NOT)?)));
        }
        if self.is("CASE") {
            let hint = "select the parts, and compute the result in the client";
            return Err(self.error_at_next(unsupported("CASE is not supported", hint)));
        }
        if self.eat_word("CAST") {
            return self.cast();
        }
        if !self.at_identifier() {
            return Err(self.expected("an expression"));
        }
        if self.peek_nth(1) == &Token::LParen {
            return self.call();
        }
        self.path()
    }

    /// Parses `CAST (… AS type)`.
    fn cast(&mut self) -> SqlResult<Expr> {
        self.expect(&Token::LParen)?;
        let inner = self.expr()?;
        self.expect_word("AS")?;
        let column_type = self.column_type()?;
        self.expect(&Token::RParen)?;
        Ok(Expr::Cast(Box::new(inner), column_type))
    }

    /// Parses a number. `sign` is the text of the sign before it, or empty.
    fn number(&mut self, sign: &str) -> SqlResult<Expr> {
        let text = match self.peek() {
            Token::Number(text, false) => format!("{sign}{}", text.replace('_', "")),
            _ => return Err(self.expected("a number")),
        };
        let number = Number::parse_sql(&text);
        let Some(number) = number else {
            let message = format!("the number {text} is out of range");
            return Err(self.error_at_next(Error::new(ErrorCode::OutOfRange, message)));
        };
        self.advance();
        Ok(literal_number(&text, number))
    }

    /// Parses a parameter, such as `$1`.
    fn parameter(&mut self) -> SqlResult<Expr> {
        let number = match self.peek() {
            Token::Placeholder(text) => text.strip_prefix('$').and_then(|n| n.parse::<u16>().ok()),
            _ => None,
        };
        match number {
            Some(number) if (1..=limits::PARAMETERS_MAX).contains(&number) => {
                self.advance();
                self.parameters = self.parameters.max(number);
                Ok(Expr::Parameter(number - 1))
            }
            _ => Err(self.expected("a parameter $1 … $65535")),
        }
    }

    /// Parses a path: `name`, then any number of `.name` and `[n]`.
    fn path(&mut self) -> SqlResult<Expr> {
        let mut steps = vec![Step::Field(self.identifier("a path")?)];
        loop {
            if self.eat(&Token::Period) {
                steps.push(Step::Field(self.identifier("the name of a field")?));
            } else if self.eat(&Token::LBracket) {
                let negative = self.eat(&Token::Minus);
                let index = self.integer("the number of an array's element")?;
                let index = i64::try_from(index)
                    .map_err(|_| self.expected("the number of an array's element"))?;
                self.expect(&Token::RBracket)?;
                steps.push(Step::Index(if negative { -index } else { index }));
            } else {
                return Ok(Expr::Path(steps));
            }
        }
    }

    /// Parses a call of a function.
    fn call(&mut self) -> SqlResult<Expr> {
        let name = match self.peek() {
            Token::Word(word) => word.value.to_lowercase(),
            _ => return Err(self.expected("a function")),
        };
        let function = match name.as_str() {
            "lower" => Function::Lower,
            "upper" => Function::Upper,
            "length" => Function::Length,
            "coalesce" => Function::Coalesce,
            "abs" => Function::Abs,
            "meta" => return self.meta(),
            "unnest" => {
                self.advance();
                let mut items = self.list(Self::expr)?;
                return match (items.pop(), items.is_empty()) {
                    (Some(item), true) => Ok(Expr::Unnest(Box::new(item))),
                    _ => Err(self.expected("one argument of UNNEST")),
                };
            }
            name if is_aggregate(name) => {
                let message = format!("{name}() may only stand in the select list");
                let hint = "an aggregate must be a select item of its own";
                return Err(self.error_at_next(unsupported(message, hint)));
            }
            name => {
                let message = format!("there is no function {name}()");
                let hint =
                    "the functions are lower, upper, length, coalesce, abs, UNNEST and META().id";
                return Err(self.error_at_next(unsupported(message, hint)));
            }
        };
        self.advance();
        let arguments = self.list(Self::expr)?;
        if function != Function::Coalesce && arguments.len() != 1 {
            let message = format!("{name}() takes one argument, not {}", arguments.len());
            return Err(self.error_at_next(Error::new(ErrorCode::Syntax, message)));
        }
        Ok(Expr::Call(function, arguments))
    }

    /// Parses `META().id`, the only form of `META()`.
    fn meta(&mut self) -> SqlResult<Expr> {
        self.advance();
        self.expect(&Token::LParen)?;
        self.expect(&Token::RParen)?;
        self.expect(&Token::Period)?;
        self.expect_word("id")?;
        Ok(Expr::DocumentId)
    }

    /// Parses the name of a type.
    pub(super) fn column_type(&mut self) -> SqlResult<ColumnType> {
        if self.is("pg_catalog") && self.peek_nth(1) == &Token::Period {
            self.advance();
            self.advance();
        }
        let place = self.expected("the name of a type");
        let name = self.name("the name of a type")?;
        let column_type = match name.as_str() {
            "text" | "varchar" | "string" | "json" | "jsonb" => ColumnType::Text,
            "bool" | "boolean" => ColumnType::Bool,
            "int" | "int4" | "integer" => ColumnType::Int4,
            "int8" | "bigint" => ColumnType::Int8,
            "float8" => ColumnType::Float8,
            "double" => {
                self.expect_word("PRECISION")?;
                ColumnType::Float8
            }
            "numeric" | "decimal" => ColumnType::Numeric,
            _ => {
                let hint = "the types are text, bool, int4, int8, float8 and numeric";
                let error = unsupported(format!("there is no type {name}"), hint);
                return Err(crate::sql::error::SqlError { error, position: place.position });
            }
        };
        if self.peek() == &Token::LParen {
            let hint = "write the type alone: numeric, text";
            return Err(
                self.error_at_next(unsupported("types have no lengths or precisions", hint))
            );
        }
        Ok(column_type)
    }
}
