//! The driver, which runs a target with its corpus and then with changed inputs, and reports those
//! that fail.
#![allow(clippy::disallowed_methods, reason = "a tool that measures real time")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::mutate;
use super::target::Target;

/// The time limit of one input. Debug builds on a busy machine take a hundredth of it.
pub const INPUT_TIME_MAX: Duration = Duration::from_secs(5);
/// The number of findings after which the run of a target ends.
const FINDINGS_MAX: usize = 5;

/// An input that a target handles wrongly.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The description of the fault.
    pub what: String,
    /// The input that failed.
    pub input: Vec<u8>,
    /// The number of the input in the seed, or its place in the corpus.
    pub origin: Origin,
}

/// The origin of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file or a sample, by its index.
    Corpus(usize),
    /// An input of a seed, by its number.
    Drawn(u64),
}

/// The result of running a target.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The number of inputs.
    pub inputs: u64,
    /// The size of all inputs, in bytes.
    pub bytes: u64,
    /// The longest time of one input.
    pub slowest: Duration,
    /// The largest number of bytes that one input made the target allocate.
    pub allocated_most: usize,
    /// The inputs that failed.
    pub findings: Vec<Finding>,
}

impl Outcome {
    /// Adds the result of another run.
    pub fn add(&mut self, other: Self) {
        self.inputs += other.inputs;
        self.bytes += other.bytes;
        self.slowest = self.slowest.max(other.slowest);
        self.allocated_most = self.allocated_most.max(other.allocated_most);
        self.findings.extend(other.findings);
    }
}

/// The runner of one target.
pub struct Reader<'a> {
    /// The target whose inputs are read.
    pub target: &'a Target,
    /// The valid inputs from which others are derived.
    pub good: &'a [Vec<u8>],
    /// Returns the bytes that this thread has allocated so far; `None` if they are not counted.
    pub allocated: Option<fn() -> usize>,
}

impl Reader<'_> {
    /// Runs the valid inputs without changes.
    pub fn corpus(&self) -> Outcome {
        let mut outcome = Outcome::default();
        self.read(&mut outcome, &[], Origin::Corpus(0));
        for (n, input) in self.good.iter().enumerate() {
            self.read(&mut outcome, input, Origin::Corpus(n));
        }
        outcome
    }

    /// Runs inputs of a seed; `before` is called with the number of each.
    pub fn drawn(&self, seed: u64, numbers: std::ops::Range<u64>, before: impl Fn(u64)) -> Outcome {
        let mut outcome = Outcome::default();
        for number in numbers {
            if outcome.findings.len() == FINDINGS_MAX {
                break;
            }
            before(number);
            let input = mutate::input(seed, number, self.good, self.target.words);
            self.read(&mut outcome, &input, Origin::Drawn(number));
        }
        outcome
    }

    /// Runs one input.
    pub fn read(&self, outcome: &mut Outcome, input: &[u8], origin: Origin) {
        let counted = || self.allocated.map_or(0, |allocated| allocated());
        let (begun, before) = (Instant::now(), counted());
        let read = catch_unwind(AssertUnwindSafe(|| (self.target.read)(input)));
        let allocated = counted().wrapping_sub(before);
        let took = begun.elapsed();
        outcome.inputs += 1;
        outcome.bytes += input.len() as u64;
        outcome.slowest = outcome.slowest.max(took);
        outcome.allocated_most = outcome.allocated_most.max(allocated);
        let most = self.target.bytes_max(input.len());
        let what = match read {
            Err(panic) => format!("panics: {}", text_of(&*panic)),
            Ok(()) if took > INPUT_TIME_MAX => format!("takes {took:?}"),
            Ok(()) if allocated > most => {
                format!("allocates {allocated} bytes, at most {most} are allowed")
            }
            Ok(()) => return,
        };
        outcome.findings.push(Finding { what, input: input.to_vec(), origin });
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
