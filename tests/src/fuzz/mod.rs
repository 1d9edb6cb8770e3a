//! Fuzzing: each decoder of bytes from a client, another process or a disk is called with randomly
//! changed valid input.
//!
//! A [`Target`] has an entry point, which reads bytes and must neither panic nor use much more time
//! or memory than their size justifies; *samples*, which the real encoders make; and words that its
//! grammar knows. The driver ([`run`]) changes samples and the files of `fuzz/corpus/<target>`
//! ([`mutate`]): it flips and replaces bytes, cuts, repeats, and splices, puts in numbers that
//! lengths tolerate least, and crosses two inputs. The entry points read an input as it is, and
//! again with its checksums corrected, so that the code after a checksum is reached.
//!
//! Input `n` of a seed depends only on the two and the corpus, so a finding can be repeated alone:
//! `fuzz --target T --seed S --from N --inputs 1`. Findings are kept in the corpus, with a unit
//! test beside the code.
//!
//! There is no feedback from the code that an input runs through, since that needs a nightly
//! compiler; `fuzz/` has the same entry points for libFuzzer.
//!
//! | file | contents |
//! |---|---|
//! | `target` | targets |
//! | `mutate` | changes of inputs |
//! | `corpus` | files of inputs |
//! | `run` | the driver |
//! | `disk`, `values`, `clients`, `peers` | the targets by the origin of their bytes |
//! | `statements`, `certificates` | samples for them |
//! | `world` | the catalog, users and states that the targets read with |

pub mod certificates;
pub mod clients;
pub mod corpus;
pub mod disk;
pub mod mutate;
pub mod peers;
pub mod run;
pub mod statements;
pub mod target;
pub mod values;
pub mod world;

use target::Target;

/// The targets of all kinds.
pub fn targets() -> Vec<Target> {
    [clients::TARGETS, peers::TARGETS, disk::TARGETS, values::TARGETS].concat()
}
