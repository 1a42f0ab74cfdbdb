//! Random changes of inputs, the same in every run with the same seed, for where there is no fuzzer.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `count`, or 0.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }
}

const MOST_CHANGES: usize = 6;
const LONGEST_PIECE: usize = 24;
const LONGEST_NEW: usize = 400;

/// One of the inputs with some changes, or one that is all new.
pub fn mutated(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    if corpus.is_empty() || random.below(8) == 0 {
        let length = random.below(LONGEST_NEW);
        return (0..length).map(|_| random.next() as u8).collect();
    }
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(MOST_CHANGES) {
        let other = &corpus[random.below(corpus.len())];
        change(random, &mut bytes, other);
    }
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let from = random.below(bytes.len() + 1);
    let to = (from + random.below(LONGEST_PIECE)).min(bytes.len());
    match random.below(6) {
        0 => drop(bytes.drain(from..to)),
        1 => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte = random.next() as u8;
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte ^= 1 << random.below(8);
            }
        }
        3 => drop(bytes.splice(from..to, piece(random, other))),
        4 => {
            let copy = bytes[from..to].to_vec();
            let at = random.below(bytes.len() + 1);
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
            drop(bytes.splice(from..to, NUMBERS[random.below(NUMBERS.len())].to_vec()));
        }
    }
}

fn piece(random: &mut Random, other: &[u8]) -> Vec<u8> {
    let from = random.below(other.len());
    other[from..]
        .iter()
        .copied()
        .take(random.below(LONGEST_PIECE))
        .collect()
}
