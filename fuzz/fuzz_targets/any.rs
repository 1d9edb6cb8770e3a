//! Runs the target that `SEXTANT_FUZZ_TARGET` names under libFuzzer.
#![no_main]

use std::sync::LazyLock;

use tests::fuzz::target::Target;
use tests::fuzz::targets;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("SEXTANT_FUZZ_TARGET").expect("SEXTANT_FUZZ_TARGET names a target");
    let found = targets().into_iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target {name}; `fuzz --list` prints all"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.read)(data));
