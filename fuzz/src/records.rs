//! Recorded calls of algorithms, as the ring buffer of a recording build delivers them.

use mptcplab_cc::replay::Record;

/// The first byte chooses the algorithm; the others are the record, continued with zeros.
pub fn replay_records(bytes: &[u8]) {
    let algorithms = mptcplab_cc::algorithms();
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    assert!(rest.len() >= size_of::<Record>() || Record::from_bytes(rest).is_none());
    let mut whole = rest.to_vec();
    whole.resize(size_of::<Record>(), 0);
    let Some(record) = Record::from_bytes(&whole) else {
        return;
    };
    let algorithm = &algorithms[usize::from(choice) % algorithms.len()];
    // Two calls with the same input must leave the same, whatever they leave.
    let results = [true, false, true].map(|per_ack| record.replay(algorithm, &[], per_ack));
    assert_eq!(results[0], results[2], "{}", algorithm.name());
}
