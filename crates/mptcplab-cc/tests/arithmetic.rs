//! The arithmetic that algorithms share (`cc.h`), against wider integers.

use mptcplab_cc::{Conn, Sock, find, load};
use std::cmp::Ordering;
use std::sync::LazyLock;

const BITS: u32 = 0;
const COMPARE: u32 = 1;
const EXCEEDS: u32 = 2;
const GROW: u32 = 3;

/// A subflow of `data/arithmetic.c` with this window.
fn probe(cwnd: u32, clamp: u32) -> (Sock, Conn) {
    static LOADED: LazyLock<()> = LazyLock::new(|| {
        load(
            "arithmetic",
            include_str!("data/arithmetic.c"),
            "arithmetic.c",
        )
        .expect("it compiles");
    });
    LazyLock::force(&LOADED);
    let mut sock =
        Sock::new(find("arithmetic").expect("it is loaded"), &[], false).expect("a sock");
    let mut conn = Conn::new();
    sock.tp.snd_cwnd = cwnd;
    sock.tp.snd_cwnd_clamp = clamp;
    sock.init(&mut conn, 0);
    (sock, conn)
}

fn call(sock: &mut Sock, conn: &mut Conn, function: u32, [a, b, c, d]: [u32; 4]) -> u32 {
    let tp = &mut sock.tp;
    (tp.snd_una, tp.packets_out, tp.sacked_out) = (function, a, b);
    (tp.lost_out, tp.retrans_out) = (c, d);
    sock.ssthresh(conn)
}

/// Arguments of a function that takes one word.
fn halves(word: u64) -> [u32; 4] {
    [(word >> 32) as u32, word as u32, 0, 0]
}

#[test]
fn bits_are_counted_exactly() {
    let (mut sock, mut conn) = probe(10, 1000);
    let powers = (0..64).map(|shift| 1u64 << shift);
    for x in powers.flat_map(|p| [p - 1, p, p | p >> 1, p + (p >> 3)]) {
        let counted = call(&mut sock, &mut conn, BITS, halves(x));
        assert_eq!(counted, 64 - x.leading_zeros(), "{x:#x}");
    }
}

#[test]
fn windows_per_squared_rtt_compare_exactly() {
    let (mut sock, mut conn) = probe(10, 1000);
    let windows = [1, 2, 999, (1 << 20) - 1, 1 << 20, u32::MAX];
    let rtts = [1, 3, 40_000, (1 << 22) - 1, 1 << 22, 1 << 26];
    let pairs: Vec<(u32, u32)> = windows.iter().flat_map(|&v| rtts.map(|t| (v, t))).collect();
    for &(v_i, t_i) in &pairs {
        for &(v_j, t_j) in &pairs {
            let i = u128::from(v_i) * u128::from(t_j).pow(2);
            let j = u128::from(v_j) * u128::from(t_i).pow(2);
            let args = [v_i, t_i, v_j, t_j];
            let order = match i.cmp(&j) {
                Ordering::Less => 0,
                Ordering::Equal => 1,
                Ordering::Greater => 2,
            };
            assert_eq!(call(&mut sock, &mut conn, COMPARE, args), order, "{args:?}");
            assert_eq!(
                call(&mut sock, &mut conn, EXCEEDS, args),
                u32::from(i > j),
                "{args:?}"
            );
        }
    }
}

/// Increments in units of 2^-40 packets; the fraction that is left counts for the next one.
#[test]
fn windows_grow_by_fractions_and_stay_within_their_bounds() {
    let grown = |cwnd: u32, clamp: u32, increments: &[i64]| -> Vec<u32> {
        let (mut sock, mut conn) = probe(cwnd, clamp);
        let mut add = |q40: &i64| call(&mut sock, &mut conn, GROW, halves(*q40 as u64));
        increments.iter().map(&mut add).collect()
    };
    let one = 1i64 << 40;
    assert_eq!(
        grown(7, 90, &[one / 2, one / 2, one / 4, one]),
        [7, 8, 8, 9]
    );
    assert_eq!(
        grown(7, 90, &[one, 3 * one + one / 2, one / 2]),
        [8, 11, 12]
    );
    // A debt takes a packet at once, of which the rest counts.
    assert_eq!(grown(7, 90, &[-1, 1, -one, -one - 1]), [6, 7, 6, 4]);
    assert_eq!(grown(5, 90, &[-4 * one, one, -one, -9 * one]), [1, 2, 1, 1]);
    assert_eq!(grown(5, 90, &[-5 * one, one]), [1, 2]);
    // At the clamp whole packets are lost.
    assert_eq!(grown(9, 10, &[5 * one, one / 2, one / 2]), [10, 10, 10]);
    // A window above a clamp that has fallen comes down with the next ACK.
    assert_eq!(grown(12, 10, &[1]), [10]);
    assert_eq!(grown(11, 10, &[1]), [10]);
}
