//! How an algorithm is loaded: what its program reads from a map, which the loader writes and the list of algorithms reads.

use crate::loader::{MAX_CONNECTIONS, Options, object_of};
use crate::system;
use libbpf_rs::{MapCore, MapFlags};
use mptcplab_cc::{Algorithm, MAX_PARAMS, ParamError};

/// End of the name of the map.
pub(crate) const CONFIG: &str = ".rodata.config";

/// `struct cc_config` of algorithms/cc_bpf.h.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Raw values in the order of the algorithm's parameters, zeros after the last one.
    pub params: [u32; MAX_PARAMS],
    /// Congestion avoidance counts ACKs instead of acknowledged packets.
    pub growth_per_ack: bool,
    connection_mask: u32,
    hz: u32,
    pacing: bool,
    /// Digest of the object.
    object: [u32; 2],
}

impl Setting {
    /// That of an algorithm which is loaded with these options.
    pub(crate) fn of(algorithm: &Algorithm, options: &Options) -> Result<Self, ParamError> {
        Ok(Self {
            params: algorithm.raw_params(&options.params)?,
            growth_per_ack: options.growth_per_ack,
            connection_mask: table_entries(options.connections) - 1,
            hz: system::hz(),
            pacing: options.pacing,
            object: digest(object_of(algorithm, options.record)),
        })
    }

    /// Whether loading the algorithm with these options gives the same program with the same setting.
    pub fn is_of(&self, algorithm: &Algorithm, options: &Options) -> bool {
        Self::of(algorithm, options).is_ok_and(|other| *self == other)
    }

    /// Whether it is the program of this algorithm, and not that of another version of its file.
    pub fn has_program_of(&self, algorithm: &Algorithm) -> bool {
        self.object == digest(object_of(algorithm, false))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let rest = [
            self.growth_per_ack.into(),
            self.connection_mask,
            self.hz,
            self.pacing.into(),
        ];
        let words = self.params.iter().chain(&rest).chain(&self.object);
        words.flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// The inverse of [`Self::bytes`]; the kernel may have rounded the length up.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes
            .chunks_exact(4)
            .filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)));
        let mut params = [0; MAX_PARAMS];
        for param in &mut params {
            *param = words.next()?;
        }
        Some(Self {
            params,
            growth_per_ack: words.next()? != 0,
            connection_mask: words.next()?,
            hz: words.next()?,
            pacing: words.next()? != 0,
            object: [words.next()?, words.next()?],
        })
    }
}

/// The only value of a map that a section of an object became.
pub(crate) fn content(map: &impl MapCore) -> Option<Vec<u8>> {
    map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?
}

/// Number of entries of the table: a power of two, so that a mask yields an index, and at most half full, because
/// bpf/glue.c tries only some entries for a connection and would find none free in a fuller table.
pub(crate) fn table_entries(connections: u32) -> u32 {
    (2 * connections.clamp(1, MAX_CONNECTIONS)).next_power_of_two()
}

/// FNV-1a, 64 bits: tells versions of a program apart, and need not withstand anybody.
fn digest(bytes: &[u8]) -> [u32; 2] {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    [hash as u32, (hash >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_comes_back_from_the_bytes_that_the_kernel_keeps() {
        let ewtcp = mptcplab_cc::find("ewtcp").unwrap();
        let options = Options {
            growth_per_ack: true,
            connections: 5000,
            ..Options::named("lab_ewtcp")
        };
        let setting = Setting::of(ewtcp, &options).unwrap();
        assert_eq!(setting.connection_mask, 16383);
        let mut bytes = setting.bytes();
        bytes.extend([0; 4]);
        let read = Setting::from_bytes(&bytes).unwrap();
        assert_eq!(read, setting);
        assert!(read.is_of(ewtcp, &options));
        assert!(Setting::from_bytes(&bytes[..20]).is_none());
    }

    /// A load that differed in pacing alone was taken for the same.
    #[test]
    fn settings_that_differ_in_anything_are_not_the_same() {
        let lia = mptcplab_cc::find("lia").unwrap();
        let plain = Options::named("lab_lia");
        let setting = Setting::of(lia, &plain).unwrap();
        let others = [
            Options {
                growth_per_ack: true,
                ..plain.clone()
            },
            Options {
                connections: 9,
                ..plain.clone()
            },
            Options {
                pacing: true,
                ..plain.clone()
            },
        ];
        for other in others {
            assert!(!setting.is_of(lia, &other), "{other:?}");
        }
        assert!(setting.has_program_of(lia));
        let olia = mptcplab_cc::find("olia").unwrap();
        assert!(!setting.is_of(olia, &plain) && !setting.has_program_of(olia));
    }

    #[test]
    fn programs_that_differ_in_one_byte_have_other_digests() {
        // The test vectors of FNV-1a: 64 bits of "" and of "a".
        assert_eq!(digest(b""), [0x8422_2325, 0xcbf2_9ce4]);
        assert_eq!(digest(b"a"), [0x8601_ec8c, 0xaf63_dc4c]);
        let digests: std::collections::BTreeSet<_> = mptcplab_cc::algorithms()
            .iter()
            .flat_map(|algorithm| [false, true].map(|record| digest(object_of(algorithm, record))))
            .collect();
        assert_eq!(digests.len(), 2 * mptcplab_cc::algorithms().len());
    }
}
