//! Large pages, in which the processor finds addresses with fewer look-ups.

use std::fs;
use std::ops::Range;

/// The largest size of an ordinary page, in bytes.
const PAGE: usize = 65_536;

/// Values are put into large pages if they fill at least this part of the memory from the first to the last one.
const FILLED: usize = 2;

/// Have Linux put values that lie near each other into large pages, which may take some time but changes nothing else. It does
/// so since version 6.1. Nothing happens where values are far apart, and where large pages are switched off for the system.
pub fn use_large_pages<'a, T: 'a>(values: impl Iterator<Item = &'a T>) {
    match pages(values) {
        Some(range) if are_allowed() => collapse(range),
        _ => {}
    }
}

/// The addresses of the pages with these values, unless these are far apart.
fn pages<'a, T: 'a>(values: impl Iterator<Item = &'a T>) -> Option<Range<usize>> {
    let (mut first, mut end, mut bytes) = (usize::MAX, 0, 0_usize);
    for value in values {
        let address = std::ptr::from_ref(value).addr();
        first = first.min(address);
        end = end.max(address + size_of::<T>());
        bytes += size_of::<T>();
    }
    let is_dense = first < end && end - first <= bytes * FILLED;
    is_dense.then_some(first - first % PAGE..end)
}

/// Whether the system's administrator has not switched them off: the call below does not ask.
fn are_allowed() -> bool {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    setting.is_ok_and(|setting| !setting.contains("[never]"))
}

#[cfg(target_os = "linux")]
fn collapse(range: Range<usize>) {
    /// From `asm-generic/mman-common.h`; libc has it for glibc only.
    const MADV_COLLAPSE: libc::c_int = 25;
    let start = std::ptr::without_provenance_mut::<libc::c_void>(range.start);
    // SAFETY: the call changes neither what is in memory nor who may access it; without large pages it returns an error.
    unsafe { libc::madvise(start, range.len(), MADV_COLLAPSE) };
}

#[cfg(not(target_os = "linux"))]
fn collapse(_: Range<usize>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_all_values_that_lie_near_each_other() {
        let values = [[0_u8; 96]; 1000];
        let all = values.as_ptr_range();
        let found = pages(values.iter()).unwrap();
        assert!(found.start <= all.start.addr() && found.start + PAGE > all.start.addr());
        assert_eq!((found.start % PAGE, found.end), (0, all.end.addr()));
        // Every second one fills half of the memory, every third one less.
        assert!(pages(values.iter().step_by(2)).is_some());
        assert_eq!(pages(values.iter().step_by(3)), None);
        assert_eq!(pages(values.iter().take(0)), None);
    }

    #[test]
    fn values_stay_the_same() {
        let values: Vec<[u64; 8]> = (0..100_000).map(|i| [i; 8]).collect();
        use_large_pages(values.iter());
        assert!(values.iter().enumerate().all(|(i, v)| *v == [i as u64; 8]));
    }
}
