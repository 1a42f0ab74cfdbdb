use super::*;
use std::net::{Ipv4Addr, SocketAddrV4};

#[test]
fn a_ring_that_is_no_power_of_two_is_refused_with_its_size() {
    let config = TracerConfig {
        ring_bytes: 100_000,
        ..TracerConfig::default()
    };
    let error = Tracer::start(&config).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("100000 bytes"), "{error}");
    assert!(matches!(error, TracerError::RingSize { bytes: 100_000 }));
}

#[test]
fn a_jiffy_lasts_as_long_as_one_of_the_kernels_possible_settings() {
    let known = [24, 100, 250, 300, 1000, 1024].map(|hz| (1_000_000_000 + hz / 2) / hz);
    assert!(
        known.contains(&crate::system::jiffy_ns()),
        "{}",
        crate::system::jiffy_ns()
    );
}

#[test]
fn the_key_is_laid_out_as_the_kernel_side_declares_it() {
    let key = SocketKey {
        cookie: 0x0102_0304_0506_0708,
        local: SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 0x1122),
        remote: SocketAddrV4::new(Ipv4Addr::new(10, 4, 5, 6), 0x3344),
    };
    let bytes = key.to_bytes();
    assert_eq!(bytes[..8], 0x0102_0304_0506_0708_u64.to_ne_bytes());
    assert_eq!(bytes[8..16], [10, 1, 2, 3, 10, 4, 5, 6]);
    assert_eq!(bytes[16..18], 0x1122_u16.to_ne_bytes());
    assert_eq!(bytes[18..20], 0x3344_u16.to_ne_bytes());
    assert_eq!(bytes[20..], [0; 4]);
}
