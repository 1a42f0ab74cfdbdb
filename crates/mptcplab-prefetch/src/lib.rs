//! Fetches values into the processor's cache before they are needed, and puts many of them into large pages.
//!
//! A crate of its own, so that the simulator can forbid `unsafe`.

mod pages;

pub use pages::use_large_pages;

/// Bytes that the cache fetches at once.
const LINE: usize = 64;

/// Have a value fetched into the cache. Changes nothing but the time that later reads take; does nothing on processors other than
/// x86-64.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<i8>();
    // The value may begin anywhere in a line.
    for offset in (0..size_of::<T>() + LINE - 1).step_by(LINE) {
        let last = size_of::<T>().saturating_sub(1);
        fetch(first.wrapping_add(offset.min(last)));
    }
}

/// The same for what lies between the beginnings of two values, which are parts of one structure.
#[inline(always)]
pub fn prefetch_between<A, B>(first: &A, end: &B) {
    let mut line = std::ptr::from_ref(first).cast::<i8>();
    let end = std::ptr::from_ref(end).cast::<i8>();
    while line < end {
        fetch(line);
        line = line.wrapping_add(LINE);
    }
    fetch(end.wrapping_sub(1));
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch(line: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction reads nothing that the program could see, and any address is allowed.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn fetch(_: *const i8) {}
