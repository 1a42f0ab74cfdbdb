//! Random changes of inputs, the same in every run with the same seed, for where there is no fuzzer.

use mptcplab_model::link::rng::Rng;

const MOST_CHANGES: usize = 6;
const LONGEST_PIECE: usize = 24;
const LONGEST_NEW: usize = 400;

/// One of the inputs with some changes, or one that is all new.
pub fn mutated(random: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    if corpus.is_empty() || below(random, 8) == 0 {
        let length = below(random, LONGEST_NEW);
        return (0..length).map(|_| random.next_u64() as u8).collect();
    }
    let mut bytes = corpus[below(random, corpus.len())].clone();
    for _ in 0..1 + below(random, MOST_CHANGES) {
        let other = &corpus[below(random, corpus.len())];
        change(random, &mut bytes, other);
    }
    bytes
}

fn change(random: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let from = below(random, bytes.len() + 1);
    let to = (from + below(random, LONGEST_PIECE)).min(bytes.len());
    match below(random, 6) {
        0 => drop(bytes.drain(from..to)),
        1 => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte = random.next_u64() as u8;
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte ^= 1 << below(random, 8);
            }
        }
        3 => drop(bytes.splice(from..to, piece(random, other))),
        4 => {
            let copy = bytes[from..to].to_vec();
            let at = below(random, bytes.len() + 1);
            drop(bytes.splice(at..at, copy));
        }
        _ => {
            const NUMBERS: [&[u8]; 6] = [
                b"0",
                b"-1",
                b"99999999999999999999",
                b"1e309",
                b"nan",
                b"[]",
            ];
            drop(bytes.splice(from..to, NUMBERS[below(random, NUMBERS.len())].to_vec()));
        }
    }
}

fn piece(random: &mut Rng, other: &[u8]) -> Vec<u8> {
    let from = below(random, other.len());
    other[from..]
        .iter()
        .copied()
        .take(below(random, LONGEST_PIECE))
        .collect()
}

/// A number below `count`, or 0.
fn below(random: &mut Rng, count: usize) -> usize {
    random.below(count.max(1) as u64) as usize
}
