//! Python with the packages that `./test` installs.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns the path of the interpreter: of `SEXTANT_PYTHON`, or of the environment that `./test`
/// creates in the target directory.
fn interpreter() -> PathBuf {
    if let Some(python) = std::env::var_os("SEXTANT_PYTHON") {
        return python.into();
    }
    let test = std::env::current_exe().expect("the path of this test");
    test.ancestors().nth(3).expect("the target directory").join("python/bin/python3")
}

/// Runs a program with this input; returns its output, or the text of its failure.
pub fn run(arguments: &[&str], input: &str) -> Result<String, String> {
    let python = interpreter();
    let mut command = Command::new(&python);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!("{} does not start ({error}): ./test makes it", python.display())
    });
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let fed = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("its output");
    // A program that has failed reads no further.
    let _fed = fed.join();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}
