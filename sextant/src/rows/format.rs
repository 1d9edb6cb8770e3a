//! The two formats of a value in PostgreSQL's protocol.

use proto::{Error, ErrorCode, Result};

/// The format of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// The text format of PostgreSQL.
    #[default]
    Text,
    /// The binary form of the type.
    Binary,
}

impl Format {
    /// Decodes the formats of `count` values from the protocol's codes. An empty list means text
    /// for all values; one code applies to all values.
    pub(crate) fn list(codes: &[i16], count: usize) -> Result<Vec<Self>> {
        let parse = |code: &i16| match code {
            0 => Ok(Self::Text),
            1 => Ok(Self::Binary),
            _ => {
                let text = format!("format code {code} is neither 0 nor 1");
                Err(Error::new(ErrorCode::InvalidParameter, text))
            }
        };
        match codes {
            [] => Ok(vec![Self::Text; count]),
            [one] => Ok(vec![parse(one)?; count]),
            many if many.len() == count => many.iter().map(parse).collect(),
            many => Err(Error::new(
                ErrorCode::InvalidParameter,
                format!("{} format codes for {count} values", many.len()),
            )),
        }
    }

    /// Returns the protocol's code of the format.
    pub(crate) fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_format_code_applies_to_all_values() {
        assert_eq!(Format::list(&[], 2).unwrap(), [Format::Text; 2]);
        assert_eq!(Format::list(&[1], 2).unwrap(), [Format::Binary; 2]);
        assert_eq!(Format::list(&[0, 1], 2).unwrap(), [Format::Text, Format::Binary]);
        assert!(Format::list(&[0, 1], 3).is_err());
        assert!(Format::list(&[7], 1).is_err());
    }
}
