//! Changes of inputs, drawn from a seed.

use fastrand::Rng;

/// The maximum size of a changed input, in bytes.
pub const INPUT_BYTES_MAX: usize = 64 << 10;

/// Numbers that are likely to cause errors as lengths and counts.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 63,
    u64::MAX >> 1,
    u64::MAX,
];

/// Returns input `number` of a seed: one of the inputs `good` with random changes.
pub fn input(seed: u64, number: u64, good: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut random = Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    if good.is_empty() || random.u8(..) == 0 {
        return noise(&mut random, 256);
    }
    let mut bytes = good[random.usize(..good.len())].clone();
    if random.u8(..8) == 0 {
        let other = &good[random.usize(..good.len())];
        bytes = crossed(&mut random, &bytes, other);
    }
    for _ in 0..=random.u8(..5) {
        change(&mut random, &mut bytes, words);
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn noise(random: &mut Rng, most: usize) -> Vec<u8> {
    (0..random.usize(..most)).map(|_| random.u8(..)).collect()
}

/// Returns the beginning of one input followed by the end of another.
fn crossed(random: &mut Rng, one: &[u8], other: &[u8]) -> Vec<u8> {
    let (end, begin) = (random.usize(..=one.len()), random.usize(..=other.len()));
    [&one[..end], &other[begin..]].concat()
}

fn change(random: &mut Rng, bytes: &mut Vec<u8>, words: &[&str]) {
    let at = random.usize(..=bytes.len());
    let rest = bytes.len() - at;
    match random.u8(..16) {
        0 => bytes.truncate(at),
        1 => {
            let end = at + random.usize(..=rest.min(64));
            bytes.drain(at..end);
        }
        2 => {
            let end = at + random.usize(..=rest);
            let (part, to) = (bytes[at..end].to_vec(), random.usize(..=bytes.len()));
            bytes.splice(to..to, part);
        }
        3 => {
            // A short part, many times.
            let part = bytes[at..at + random.usize(..=rest.min(8))].to_vec();
            let times = 1 << random.u8(..12);
            bytes.splice(at..at, part.repeat(times));
        }
        4 => {
            let (word, len) =
                (NUMBERS[random.usize(..NUMBERS.len())], [1, 2, 4, 8][random.usize(..4)]);
            put(bytes, at, &word.to_le_bytes()[..len]);
        }
        5 => {
            let (word, len) =
                (NUMBERS[random.usize(..NUMBERS.len())], [1, 2, 4, 8][random.usize(..4)]);
            put(bytes, at, &word.to_be_bytes()[8 - len..]);
        }
        6 => {
            let number = varint(NUMBERS[random.usize(..NUMBERS.len())]);
            let end = at + usize::from(random.bool()).min(rest);
            bytes.splice(at..end, number);
        }
        7 => {
            let part = noise(random, 16);
            bytes.splice(at..at, part);
        }
        8 | 9 if !words.is_empty() => {
            let word = words[random.usize(..words.len())].as_bytes();
            let end = at + if random.bool() { word.len().min(rest) } else { 0 };
            bytes.splice(at..end, word.iter().copied());
        }
        10 if rest > 0 => bytes[at] = random.u8(..),
        11 if rest > 0 => bytes[at] = bytes[at].wrapping_add(if random.bool() { 1 } else { 255 }),
        _ if rest > 0 => bytes[at] ^= 1 << random.u8(..8),
        _ => {}
    }
}

/// Overwrites bytes from `at` on, up to the end of the input.
fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    for (byte, new) in bytes[at..].iter_mut().zip(new) {
        *byte = *new;
    }
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_depends_on_its_seed_and_its_number_only() {
        let good = vec![b"SELECT 1".to_vec(), vec![7; 300]];
        let drawn = |seed| (0..2_000).map(|n| input(seed, n, &good, &["FROM"])).collect::<Vec<_>>();
        let inputs = drawn(5);
        assert_eq!(inputs, drawn(5));
        assert_ne!(inputs, drawn(6));
        assert!(inputs.iter().all(|input| input.len() <= INPUT_BYTES_MAX));
        assert!(inputs.iter().any(|input| input.windows(4).any(|part| part == b"FROM")));
        assert!(inputs.iter().any(|input| input.len() > 4 * 300), "some are long");
        let mut distinct = inputs;
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > 1_500, "{} distinct inputs", distinct.len());
    }
}
