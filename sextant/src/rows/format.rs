//! The two ways in which PostgreSQL's protocol writes a value.

use proto::{Error, ErrorCode, Result};

/// How a value is written on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// As text.
    #[default]
    Text,
    /// As the type's own bytes.
    Binary,
}

impl Format {
    /// The formats of `count` values, from the codes of a message: none is text, one is for all.
    pub(crate) fn list(codes: &[i16], count: usize) -> Result<Vec<Self>> {
        let parse = |code: &i16| match code {
            0 => Ok(Self::Text),
            1 => Ok(Self::Binary),
            _ => Err(Error::new(ErrorCode::InvalidParameter, format!("there is no format {code}"))),
        };
        match codes {
            [] => Ok(vec![Self::Text; count]),
            [one] => Ok(vec![parse(one)?; count]),
            many if many.len() == count => many.iter().map(parse).collect(),
            many => Err(Error::new(
                ErrorCode::InvalidParameter,
                format!("{} formats for {count} values", many.len()),
            )),
        }
    }

    /// Its code on the wire.
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
    fn one_format_is_for_all() {
        assert_eq!(Format::list(&[], 2).unwrap(), [Format::Text; 2]);
        assert_eq!(Format::list(&[1], 2).unwrap(), [Format::Binary; 2]);
        assert_eq!(Format::list(&[0, 1], 2).unwrap(), [Format::Text, Format::Binary]);
        assert!(Format::list(&[0, 1], 3).is_err());
        assert!(Format::list(&[7], 1).is_err());
    }
}
