//! The functions and operators without an implementation.

use crate::data::{FunctionRow, OperatorRow};
use crate::types::oid::{self, Oid};

/// Types whose values do not exist yet: dates, times, intervals, `bytea`, and types of PostgreSQL's
/// own catalogue that no client computes with.
const TYPES: [Oid; 24] = [
    oid::DATE,
    oid::TIME,
    oid::TIMESTAMP,
    oid::TIMESTAMPTZ,
    oid::INTERVAL,
    oid::BYTEA,
    oid::UUID,
    // timetz and arrays of times
    1266,
    1115,
    1182,
    1183,
    1185,
    1187,
    // point, money and their arrays
    600,
    790,
    791,
    // bit, varbit, ranges
    1560,
    1562,
    3831,
    // pg_lsn, xid8, enums, jsonpath
    3220,
    5069,
    3500,
    4072,
    // anyrange's own array
    3834,
];

/// Functions that need a clock's calendar, or a module that does not exist here.
const NAMES: [&str; 7] = [
    "timeofday",
    "pg_timezone_names",
    "to_char",
    "to_number",
    "gen_random_uuid",
    "json_populate_record",
    "array_sample",
];

/// Operators of types that exist here, which need more than these functions have.
const OPERATORS: [&str; 14] = [
    "aclcontains",
    "aclinsert",
    "aclremove",
    "jsonb_delete_path",
    "jsonb_path_exists_opr",
    "jsonb_path_match_opr",
    "ts_match_tt",
    "network_overlap",
    "network_sub",
    "network_subeq",
    "network_sup",
    "network_supeq",
    "inetpl",
    "inetand",
];

/// Further operators on network addresses.
const NETWORK: [&str; 5] = ["inetmi", "inetmi_int8", "inetnot", "inetor", "int8pl_inet"];

/// Returns true for a function without an implementation.
pub fn is_later(row: &FunctionRow) -> bool {
    let types = row.arguments.iter().chain([&row.result]).chain(row.out.iter().map(|(_, ty)| ty));
    let has_type = types.into_iter().any(|ty| TYPES.contains(ty));
    // The order of values does not depend on their type.
    let is_general = matches!(row.name.as_str(), "min" | "max");
    (has_type && !is_general) || NAMES.contains(&row.name.as_str())
}

/// Returns true for an operator without an implementation.
pub fn is_later_operator(row: &OperatorRow) -> bool {
    let has_type = [row.left, row.right, row.result].iter().any(|ty| TYPES.contains(ty));
    let is_comparison = matches!(row.name.as_str(), "=" | "<>" | "<" | "<=" | ">" | ">=");
    let function = row.function.as_str();
    (has_type && !(is_comparison && row.left == row.right))
        || OPERATORS.contains(&function)
        || NETWORK.contains(&function)
}
