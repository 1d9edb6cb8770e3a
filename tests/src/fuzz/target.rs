//! A target of fuzzing.

/// The memory that any input may take in addition to its share by size, in bytes.
pub const BYTES_MIN: usize = 1 << 20;

/// A decoder, with valid inputs of it.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the target, and of the folder of its corpus.
    pub name: &'static str,
    /// The function that decodes an input, which panics if something is wrong.
    pub read: fn(&[u8]),
    /// The function that returns valid inputs.
    pub samples: fn() -> Vec<Vec<u8>>,
    /// The words to insert into inputs.
    pub words: &'static [&'static str],
    /// The maximum number of bytes that the target may allocate for each byte of its input.
    pub bytes_each: usize,
    /// The share of inputs in `./test`, which is lower for slow targets.
    pub share: f64,
}

impl Target {
    /// Returns a target without words, with the default limits.
    pub const fn new(name: &'static str, read: fn(&[u8]), samples: fn() -> Vec<Vec<u8>>) -> Self {
        Self { name, read, samples, words: &[], bytes_each: 64, share: 1.0 }
    }

    /// Returns the target with words of its grammar.
    pub const fn with_words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    /// Returns the target with another value of `bytes_each`.
    pub const fn with_bytes_each(self, bytes_each: usize) -> Self {
        Self { bytes_each, ..self }
    }

    /// Returns the target with another share of the inputs in `./test`.
    pub const fn with_share(self, share: f64) -> Self {
        Self { share, ..self }
    }

    /// Returns the maximum number of bytes that an input of this length may make the target
    /// allocate.
    pub fn bytes_max(&self, input_bytes: usize) -> usize {
        BYTES_MIN + self.bytes_each * input_bytes
    }
}
