//! Tests of footers: those of real files, and damaged ones.

use super::*;

const CANNOT: std::result::Result<(), &str> = Err("its footer cannot be read");

fn number(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Returns the beginning of a footer, whose elements have these numbers of children and these
/// further fields, without row groups and end.
fn beginning(children: &[u64], name: &[u8], more: &[u8]) -> Vec<u8> {
    // The version, and the head of a list of structs.
    let mut out = vec![0x15, 2, 0x19, 0xfc];
    number(children.len() as u64, &mut out);
    for children in children {
        out.push(0x48);
        number(name.len() as u64, &mut out);
        out.extend(name);
        out.push(0x15);
        number(children << 1, &mut out);
        out.extend(more);
        out.push(0);
    }
    // The number of rows.
    out.extend([0x16, 0]);
    out
}

fn footer(children: &[u64]) -> Vec<u8> {
    footer_with(children, &[])
}

fn footer_with(children: &[u64], more: &[u8]) -> Vec<u8> {
    // No row groups.
    [&beginning(children, b"x", more)[..], &[0x19, 0x0c, 0]].concat()
}

#[test]
fn a_schema_that_would_end_the_process_is_refused() {
    assert_eq!(check(&footer(&[3, 0, 2, 0, 0, 0])), Ok(()));
    let chain = |length: usize| [vec![1; length - 1], vec![0]].concat();
    assert_eq!(check(&footer(&chain(GROUPS_MAX))), Ok(()));
    let deep = Err("its columns nest too deep");
    assert_eq!(check(&footer(&chain(100_000))), deep);
    let many = Err("the groups of its schema have more columns than there are");
    assert_eq!(check(&footer(&[(1 << 31) - 1, 0])), many);
    assert_eq!(check(&footer(&[2, 2, 2, 0])), many, "together");
    // Many groups beside each other are no depth.
    let wide: Vec<u64> = [1000].into_iter().chain([1, 0].repeat(1000)).collect();
    assert_eq!(check(&footer(&wide)), Ok(()));
}

#[test]
fn the_names_of_a_group_are_copied_for_each_of_its_columns() {
    let columns = |count: usize, name: usize| {
        let children = [vec![1, count as u64], vec![0; count]].concat();
        let mut footer = beginning(&children, &vec![b'x'; name], &[]);
        footer.extend([0x19, 0x0c, 0]);
        check(&footer)
    };
    assert_eq!(columns(10, 1 << 20), Ok(()));
    assert_eq!(columns(10_000, 100), Ok(()));
    assert_eq!(columns(25, 1 << 20), Err("the names of its columns are too long"));
}

#[test]
fn logical_types_have_the_kinds_of_the_format() {
    for (type_, expected) in [
        // Values after the number of children: a string; a decimal of 9 digits; a time in micros; an integer; a shape; an unknown one.
        (vec![0x5c, 0x1c, 0, 0], Ok(())),
        (vec![0x5c, 0x5c, 0x15, 4, 0x15, 18, 0, 0], Ok(())),
        (vec![0x5c, 0x7c, 0x11, 0x1c, 0x2c, 0, 0, 0, 0], Ok(())),
        (vec![0x5c, 0xac, 0x13, 8, 0x11, 0, 0], Ok(())),
        (vec![0x5c, 0x0c, 34, 0x18, 1, b'c', 0, 0], Ok(())),
        (vec![0x5c, 0x0c, 60, 0x15, 2, 0, 0], Ok(())),
        // A scale that is a double or a boolean.
        (vec![0x5c, 0x5c, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], CANNOT),
        (vec![0x5c, 0x5c, 0x11, 0x15, 18, 0, 0], CANNOT),
    ] {
        assert_eq!(check(&footer_with(&[1, 0], &type_)), expected, "{type_:02x?}");
    }
}

#[test]
fn what_the_library_would_read_otherwise_is_refused() {
    let whole = footer(&[1, 0]);
    let replaced = |at: usize, with: &[u8]| [&whole[..at], with, &whole[at + 1..]].concat();
    assert_eq!(whole[2], 0x19);
    assert_eq!(check(&replaced(2, &[0x1a])), CANNOT, "the schema as a set");
    assert_eq!(check(&replaced(2, &[0x09, 4])), Ok(()), "an id by itself");
    assert_eq!(check(&replaced(2, &[0x09, 0x84, 0x80, 8])), CANNOT, "an id of more bits");
    assert_eq!(check(&replaced(2, &[0x09, 5, 0x0c, 0x19])), CANNOT, "an id below zero");
    assert_eq!(whole[8], 0x15);
    for kind in [0x14, 0x16, 0x17] {
        assert_eq!(check(&replaced(8, &[kind])), CANNOT, "children of the kind {kind:02x}");
    }
    let end = whole.len() - 1;
    let with = |more: &[u8]| check(&[&whole[..end], more, &[0]].concat());
    assert_eq!(with(&[0x69, 0x13, 1]), Ok(()), "an unknown list");
    assert_eq!(with(&[0x69, 0xf1, 0xff, 0xff, 0xff, 0xff, 7]), CANNOT, "booleans");
    assert_eq!(with(&[0x6b, 0x81, 0x80, 0x80, 4, 0x33]), CANNOT, "a long map");
    let again = [0x09, 8, 0xfc, 0xff, 0xff, 0xff, 0xff, 7];
    assert_eq!(with(&again), CANNOT, "row groups once more");
}

#[test]
fn row_groups_are_no_more_than_their_bytes() {
    let check_with = |count: u64, bytes: usize| {
        let mut footer = beginning(&[1, 0], b"x", &[]);
        footer.extend([0x19, 0xfc]);
        number(count, &mut footer);
        footer.extend(vec![0; bytes]);
        check(&footer)
    };
    assert_eq!(check_with(0, 1), Ok(()));
    // Each of them is empty.
    assert_eq!(check_with(5, 6), Ok(()));
    assert_eq!(check_with(7, 6), CANNOT);
    assert_eq!(check_with((1 << 31) - 1, 6), CANNOT);
    assert_eq!(check_with(40_000, 50_000), Err("it has too many row groups"));
}

#[test]
fn columns_have_the_kinds_of_the_format() {
    let check_with = |column: &[u8]| {
        let mut footer = beginning(&[1, 0], b"x", &[]);
        // A row group with a column.
        footer.extend([0x19, 0x1c, 0x19, 0x1c]);
        footer.extend(column);
        // The ends of the column, of the row group and of the footer.
        footer.extend([0, 0, 0]);
        check(&footer)
    };
    // The column's data: the type, encodings, and statistics with a number of NULLs.
    assert_eq!(check_with(&[0x3c, 0x15, 2, 0x19, 0x15, 0, 0xac, 0x36, 4, 0, 0]), Ok(()));
    assert_eq!(check_with(&[0x3c, 0x16, 2, 0]), CANNOT, "another kind");
    assert_eq!(check_with(&[0x3c, 0x15, 2, 0x19, 0xf5, 0xff, 0xff, 0xff, 7, 0]), CANNOT);
}

#[test]
fn bytes_that_are_no_footer_are_refused() {
    let whole = footer(&[3, 0, 2, 0, 0, 0]);
    for end in 0..whole.len() - 1 {
        assert_eq!(check(&whole[..end]), CANNOT, "cut at {end}");
    }
    assert_eq!(check(&[0xac; 1000]), CANNOT, "structs in structs");
    assert_eq!(check(&[0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 15]), CANNOT, "a long list");
}
