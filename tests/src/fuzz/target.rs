//! A target of fuzzing.

/// The memory that an input may take besides its own worth, in bytes.
pub const BYTES_MIN: usize = 1 << 20;

/// A decoder with inputs to begin with.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name, which is that of the folder of its corpus.
    pub name: &'static str,
    /// Reads an input. It panics if something is wrong.
    pub read: fn(&[u8]),
    /// Good inputs.
    pub samples: fn() -> Vec<Vec<u8>>,
    /// Words that are put into inputs.
    pub words: &'static [&'static str],
    /// The bytes that an input may make the target allocate, in all, for each of its own bytes.
    pub bytes_each: usize,
    /// The share of inputs that it reads in `./test`: costly targets read fewer.
    pub share: f64,
}

impl Target {
    /// A target without words, with the usual limits.
    pub const fn new(name: &'static str, read: fn(&[u8]), samples: fn() -> Vec<Vec<u8>>) -> Self {
        Self { name, read, samples, words: &[], bytes_each: 64, share: 1.0 }
    }

    /// The target with words of its grammar.
    pub const fn with_words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    /// The target with another limit of allocated bytes for each byte of an input.
    pub const fn with_bytes_each(self, bytes_each: usize) -> Self {
        Self { bytes_each, ..self }
    }

    /// The target with a share of the inputs in `./test`.
    pub const fn with_share(self, share: f64) -> Self {
        Self { share, ..self }
    }

    /// The bytes that an input of a length may make the target allocate.
    pub fn bytes_max(&self, input_bytes: usize) -> usize {
        BYTES_MIN + self.bytes_each * input_bytes
    }
}
