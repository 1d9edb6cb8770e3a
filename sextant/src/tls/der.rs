//! The parts of a certificate that this project parses itself: its end, and the algorithm of its signature.
//!
//! The certificate is the process's own, or one whose chain was verified. Nevertheless each length is checked.

const SEQUENCE: u8 = 0x30;
const CONTEXT_0: u8 = 0xa0;
const OBJECT_ID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Splits off one element: its tag, its contents, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// Splits off one element with a given tag.
fn tagged(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    element(bytes).and_then(|(found, contents, rest)| (found == tag).then_some((contents, rest)))
}

/// The end of a certificate's validity, in seconds since 1970.
pub fn not_after(certificate: &[u8]) -> Option<i64> {
    let (certificate, _) = tagged(SEQUENCE, certificate)?;
    let (mut fields, _) = tagged(SEQUENCE, certificate)?;
    if let Some((_, rest)) = tagged(CONTEXT_0, fields) {
        fields = rest;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (validity, _) = tagged(SEQUENCE, fields)?;
    let (tag, text, _) = element(element(validity)?.2)?;
    time(tag, text)
}

/// The object identifier of the algorithm that signed a certificate, as encoded bytes.
pub fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = tagged(SEQUENCE, certificate)?;
    let (_, rest) = tagged(SEQUENCE, certificate)?;
    let (algorithm, _) = tagged(SEQUENCE, rest)?;
    tagged(OBJECT_ID, algorithm).map(|(id, _)| id)
}

fn time(tag: u8, text: &[u8]) -> Option<i64> {
    let text = text.strip_suffix(b"Z")?;
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0'));
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year);
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => text.split_at_checked(4).map(|(year, rest)| (number(year), rest))?,
        _ => return None,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| rest.get(at..at + 2));
    let (month, day) = (number(month?), number(day?));
    let (hour, minute, second) = (number(hour?), number(minute?), number(second?));
    if rest.len() != 10 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days since 1970 of a date of the Gregorian calendar, counted in years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_both_forms() {
        assert_eq!(time(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(time(UTC_TIME, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(GENERALIZED_TIME, b"20500101000000Z"), Some(2_524_608_000));
        assert_eq!(time(GENERALIZED_TIME, b"20000229120000Z"), Some(951_825_600));
        for wrong in [&b"700101000000"[..], b"7001010000Z", b"701301000000Z", b"Z", b""] {
            assert_eq!(time(UTC_TIME, wrong), None);
        }
    }

    #[test]
    fn a_certificate_that_is_cut_anywhere_is_refused_or_read_and_never_panics() {
        let whole = [0x30, 0x82, 0x01, 0x00, 0x30, 0x81, 0xff, 0xa0, 0x03, 0x02, 0x01, 0x02];
        for end in 0..whole.len() {
            assert_eq!(not_after(&whole[..end]), None);
            assert_eq!(signature_algorithm(&whole[..end]), None);
        }
        assert_eq!(not_after(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x30]), None);
        assert_eq!(not_after(&[0x30, 0x80, 0, 0]), None, "no indefinite length");
    }
}
