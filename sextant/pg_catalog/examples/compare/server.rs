//! PostgreSQL's answers to statements.

use super::psql::{folder, script};
use super::recorded::Recorded;

/// Returns PostgreSQL's rows for each statement, as the text of COPY, or its error.
pub fn answers(statements: &[Recorded]) -> Vec<Result<Vec<String>, String>> {
    let folder = folder("answers");
    let mut text = String::from("set statement_timeout = '20s';\n");
    // COPY does not report the errors that occur after its first message: the statement runs alone first.
    for (number, statement) in statements.iter().enumerate() {
        text += &format!(
            "\\o /dev/null\n{text}\n;\n\\set code :SQLSTATE\n\\set message :LAST_ERROR_MESSAGE\n\
             \\o {number}\nCOPY (\n{text}\n) TO STDOUT;\n\\qecho --end :code :message\n",
            text = statement.text.trim().trim_end_matches(';')
        );
    }
    script(&text, &folder);
    let answers = (0..statements.len()).map(|number| {
        let text = std::fs::read_to_string(folder.join(number.to_string())).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let end = lines.iter().rposition(|line| line.starts_with("--end ")).unwrap_or(0);
        let status = lines.split_off(end.min(lines.len())).join(" ");
        match status.starts_with("--end 00000") {
            true => Ok(lines),
            false => Err(status.chars().take(200).collect()),
        }
    });
    let answers = answers.collect();
    std::fs::remove_dir_all(&folder).expect("the folder");
    answers
}
