//! Determines the statements that the audit records, and their texts in the audit.

use proto::model::users::UserCommand;
use proto::rpc::command::{
    AuditClass, BuildGeneration, BuildIndexes, CancelBuild, CancelHandOver, CancelMoves,
    CancelVersion, CommandKind, CreateBucket, CreateDataSet, CreateIndex, DrainNode, DropBucket,
    DropIndex, HandOver, LoadVersion, MoveBucket, RemoveNode, RenameIndex, SetCopies, SetReplicas,
    SetSeparateIncludedColumns, SetSliceBytesMax, SetVersionIdle, StartMoves,
};
use sqlparser::tokenizer::{Token, Whitespace};

use super::ast::{Admin, Statement};
use crate::audit::EventKind;

/// The maximum length of a statement's text, in bytes. A longer text is cut and ends with `…`.
const TEXT_BYTES_MAX: usize = 4096;

/// Returns the kind of audit event for a statement; `None` if the audit does not record it. The
/// match has a case for every statement, so that a new statement cannot be forgotten.
pub fn kind(statement: &Statement) -> Option<EventKind> {
    match statement {
        Statement::CreateBucket(_) => of::<CreateBucket>(),
        Statement::CreateDataSet(_) => of::<CreateDataSet>(),
        Statement::LoadVersion { .. } => of::<LoadVersion>(),
        Statement::DropBucket { .. } => of::<DropBucket>(),
        Statement::CreateIndex(_) => of::<CreateIndex>(),
        Statement::BuildIndex { .. } => of::<BuildIndexes>(),
        Statement::DropIndex { .. } => of::<DropIndex>(),
        Statement::CancelBuild(_) => of::<CancelBuild>(),
        Statement::AlterIndex { .. } => of::<BuildGeneration>(),
        Statement::RenameIndex { .. } => of::<RenameIndex>(),
        Statement::Admin(statement) => kind_of_admin(statement),
        Statement::User(_) => of::<Box<UserCommand>>(),
        Statement::Insert(_)
        | Statement::Delete { .. }
        | Statement::Select(_)
        | Statement::Catalogue(_)
        | Statement::Explain(_)
        | Statement::CopyIn { .. }
        | Statement::CopyOut(_)
        | Statement::ExplainRebalance(_)
        | Statement::Show(_)
        | Statement::Set { .. }
        | Statement::ResetAll
        | Statement::SetTransaction(_)
        | Statement::SetCharacteristics(_)
        | Statement::Nothing { .. }
        | Statement::Begin(_)
        | Statement::Commit
        | Statement::Rollback
        | Statement::Savepoint(_)
        | Statement::RollbackTo(_)
        | Statement::Release(_)
        | Statement::DiscardAll
        | Statement::Deallocate(_) => None,
    }
}

/// Returns the kind of audit event for a statement about placement.
fn kind_of_admin(statement: &Admin) -> Option<EventKind> {
    match statement {
        Admin::Rebalance { .. } | Admin::MoveSlice { .. } => of::<StartMoves>(),
        Admin::CancelRebalance { .. } => of::<CancelMoves>(),
        Admin::MoveVbuckets { .. } => of::<HandOver>(),
        Admin::MoveBucket { .. } => of::<MoveBucket>(),
        Admin::CancelVbuckets { .. } => of::<CancelHandOver>(),
        Admin::DrainNode { .. } => of::<DrainNode>(),
        Admin::RemoveNode { .. } => of::<RemoveNode>(),
        // The next two statements send no command to the StateContext.
        Admin::ChangeCoordinators(_) => Some(EventKind::Node),
        Admin::CancelTransaction(_) => Some(EventKind::Transaction),
        Admin::SetCopies { .. } => of::<SetCopies>(),
        Admin::SetVersionIdle { .. } => of::<SetVersionIdle>(),
        Admin::CancelVersion { .. } => of::<CancelVersion>(),
        Admin::SeparateIncludedColumns { .. } => of::<SetSeparateIncludedColumns>(),
        Admin::SetSliceBytesMax { .. } => of::<SetSliceBytesMax>(),
        Admin::SetReplicas { .. } => of::<SetReplicas>(),
    }
}

/// Returns the kind of audit event for statements that propose the command `C`.
fn of<C: CommandKind>() -> Option<EventKind> {
    C::AUDITED.map(|audited| match audited {
        AuditClass::Definition => EventKind::Ddl,
        AuditClass::Move => EventKind::Move,
        AuditClass::Node => EventKind::Node,
        AuditClass::Users => EventKind::Users,
    })
}

/// Returns the text of a statement for the audit, from its tokens without comments. In
/// definitions and in statements about users, `…` replaces each literal. In other statements the
/// literals remain: numbers and addresses of nodes, and numbers of slices and transactions.
pub fn text<'a>(kind: EventKind, tokens: impl Iterator<Item = &'a Token>) -> String {
    let has_literals = matches!(kind, EventKind::Move | EventKind::Node | EventKind::Transaction);
    let mut text = String::new();
    let mut is_apart = false;
    for token in tokens {
        if let Token::Whitespace(space) = token {
            is_apart |= matches!(space, Whitespace::Space | Whitespace::Newline | Whitespace::Tab);
            is_apart |= matches!(
                space,
                Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)
            );
            continue;
        }
        if std::mem::take(&mut is_apart) && !text.is_empty() {
            text.push(' ');
        }
        match has_literals || is_plain(token) {
            // A name in quotes may have any characters; JSON makes six of a control character.
            true => {
                text.extend(token.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }))
            }
            false => text.push('…'),
        }
        if text.len() > TEXT_BYTES_MAX {
            let end = (0..=TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or(0));
            text.push('…');
            break;
        }
    }
    text
}

/// Returns true for a token that is not a literal: a word, a quoted name, or punctuation.
fn is_plain(token: &Token) -> bool {
    matches!(
        token,
        Token::Word(_)
            | Token::Comma
            | Token::Period
            | Token::LParen
            | Token::RParen
            | Token::LBracket
            | Token::RBracket
            | Token::Eq
            | Token::DoubleEq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::Mod
            | Token::Colon
            | Token::DoubleColon
            | Token::Arrow
            | Token::LongArrow
            | Token::StringConcat
    )
}

#[cfg(test)]
mod tests {
    use crate::audit::EventKind;
    use crate::sql::parse;

    fn audited(sql: &str) -> Option<(EventKind, String)> {
        let mut parsed = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let audited = parsed.pop().expect("one statement").audited?;
        Some((audited.0, audited.1.to_string()))
    }

    #[test]
    fn a_change_is_listed_without_its_literals() {
        let cases = [
            ("DROP  INDEX\n by_n", EventKind::Ddl, "DROP INDEX by_n"),
            (
                "CREATE INDEX i ON b (a, \"B c\") WHERE a > 7 AND s = 'secret' -- why\n WITH (slices = 4)",
                EventKind::Ddl,
                "CREATE INDEX i ON b (a, \"B c\") WHERE a > … AND s = … WITH (slices = …)",
            ),
            ("CREATE USER u PASSWORD E'sec\\'ret'", EventKind::Users, "CREATE USER u PASSWORD …"),
            ("CREATE USER u PASSWORD $q$secret$q$", EventKind::Users, "CREATE USER u PASSWORD …"),
            ("GRANT scan ON b TO u", EventKind::Users, "GRANT scan ON b TO u"),
            ("DRAIN NODE '201'", EventKind::Node, "DRAIN NODE '201'"),
            (
                "ALTER INDEX i MOVE SLICE 3 TO '202'",
                EventKind::Move,
                "ALTER INDEX i MOVE SLICE 3 TO '202'",
            ),
            ("ALTER BUCKET b SET (copies = 2)", EventKind::Ddl, "ALTER BUCKET b SET (copies = …)"),
        ];
        for (sql, what, text) in cases {
            assert_eq!(audited(sql), Some((what, text.to_owned())), "{sql}");
        }
        assert_eq!(audited("SELECT 1"), None);
        let texts: Vec<_> = parse("DROP BUCKET a; SELECT 1; DROP BUCKET b /* last */")
            .expect("three statements")
            .into_iter()
            .map(|parsed| parsed.audited.map(|(_, text)| text.to_string()))
            .collect();
        assert_eq!(texts, [Some("DROP BUCKET a".into()), None, Some("DROP BUCKET b".into())]);
    }

    #[test]
    fn a_long_text_is_cut() {
        let points: Vec<_> = (0..9_000).map(|n| n.to_string()).collect();
        let sql = format!(
            "CREATE INDEX i ON b (a::int8) PARTITION BY RANGE (a::int8) SPLIT AT ({})",
            points.join(", ")
        );
        if let Ok(mut parsed) = parse(&sql) {
            let (_, text) = parsed.pop().expect("one").audited.expect("a definition");
            assert!(text.len() < 4_200 && text.ends_with('…'), "{}", text.len());
        }
        let names: Vec<_> =
            (0..200).map(|n| format!("a_rather_long_name_of_a_field_{n}")).collect();
        let sql = format!("BUILD INDEX ON b ({})", names.join(", "));
        let (_, text) = audited(&sql).expect("a definition");
        assert!(text.len() < 4_200 && text.ends_with('…'), "{}", text.len());
    }
}
