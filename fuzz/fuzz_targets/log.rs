#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| storage::fuzz::log(data));
