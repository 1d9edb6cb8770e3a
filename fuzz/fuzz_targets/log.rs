#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| indexer::slice::fuzz::log(data));
