//! Payload in which every byte follows from its position, so that a receiver can check that it received what was sent.
//!
//! It is a table of random bytes, repeated. The length of the table is a prime larger than any segment, window or read, so
//! that lost, duplicated or reordered data do not match by accident.

use mptcplab_model::link::rng::Rng;

/// The largest prime below 2^20.
const PERIOD: usize = 1_048_573;

/// The data of one flow.
#[derive(Debug)]
pub(crate) struct PayloadPattern {
    table: Vec<u8>,
}

/// The first byte that differs from what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Its position in the stream.
    pub(crate) position: u64,
    pub(crate) expected: u8,
    pub(crate) found: u8,
}

impl PayloadPattern {
    /// The payload of the flow with this name. Every flow has a different one, so that mixed-up flows are detected.
    pub(crate) fn new(flow: &str) -> Self {
        let mut rng = Rng::new(0, 0, "payload", flow);
        let words = (0..PERIOD.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes());
        Self {
            table: words.take(PERIOD).collect(),
        }
    }

    /// The bytes from a position on, up to the end of the table; at least one.
    pub(crate) fn from(&self, position: u64) -> &[u8] {
        // Below PERIOD, which fits.
        &self.table[(position % PERIOD as u64) as usize..]
    }

    /// Checks that data received at a position are what was sent.
    pub(crate) fn check(&self, mut position: u64, mut data: &[u8]) -> Result<(), Mismatch> {
        while !data.is_empty() {
            let expected = self.from(position);
            let length = expected.len().min(data.len());
            if data[..length] != expected[..length] {
                // Invariant: two unequal slices of one length differ somewhere.
                let at = (0..length)
                    .find(|&at| data[at] != expected[at])
                    .unwrap_or(0);
                return Err(Mismatch {
                    position: position + at as u64,
                    expected: expected[at],
                    found: data[at],
                });
            }
            data = &data[length..];
            position += length as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_checked_across_the_table_s_end() {
        let pattern = PayloadPattern::new("mp");
        let start = PERIOD as u64 - 100;
        let mut data: Vec<u8> = pattern
            .from(start)
            .iter()
            .chain(pattern.from(0))
            .copied()
            .take(300)
            .collect();
        assert_eq!(pattern.check(start, &data), Ok(()));
        assert_eq!(pattern.check(start + PERIOD as u64, &data), Ok(()));
        let before = data[250];
        data[250] ^= 1;
        let mismatch = Mismatch {
            position: start + 250,
            expected: before,
            found: before ^ 1,
        };
        assert_eq!(pattern.check(start, &data), Err(mismatch));
    }

    #[test]
    fn shifted_data_and_another_flow_s_data_are_wrong() {
        let (one, two) = (PayloadPattern::new("one"), PayloadPattern::new("two"));
        let data = &one.from(1_428)[..1_428];
        assert!(one.check(0, data).is_err() && one.check(1_427, data).is_err());
        assert!(two.check(1_428, data).is_err());
    }
}
