//! Says which algorithm's file ends the process: what a person has written may divide by zero or follow a wrong pointer.

use libc::{c_int, c_void, siginfo_t};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The addresses of a loaded library, and what to say when its code crashes. Never freed.
struct Code {
    first: usize,
    end: usize,
    by_zero: String,
    by_memory: String,
    by_trap: String,
    next: *const Self,
}

/// The newest library, which has the one before it.
static NEWEST: AtomicPtr<Code> = AtomicPtr::new(ptr::null_mut());

const SIGNALS: [c_int; 4] = [libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGBUS];

/// What was to be done about these signals before.
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// From now on a crash of the library that holds `object` names the file `place` and ends the process with exit code 2.
pub(crate) fn watch(object: *const c_void, place: &str) {
    let Some((first, end)) = library_of(object as usize) else {
        return;
    };
    let code = Box::leak(Box::new(Code {
        first,
        end,
        by_zero: format!(
            "\nerror: {place}: the algorithm divides by zero\n\nhint: test the divisor first; in the kernel the \
             quotient would be 0, on this processor it ends the program\n"
        ),
        by_memory: format!(
            "\nerror: {place}: the algorithm uses an address that is not its own\n\nhint: test indices and pointers \
             first; the kernel's verifier refuses code that does not\n"
        ),
        by_trap: format!(
            "\nerror: {place}: the algorithm does what has no defined result, such as a division by a constant zero\n\n\
             hint: the compiler put a trap there; -O0 -g and a debugger show the line\n"
        ),
        next: NEWEST.load(Ordering::Acquire),
    }));
    while let Err(newest) = NEWEST.compare_exchange(
        code.next.cast_mut(),
        code,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        code.next = newest;
    }
    BEFORE.get_or_init(|| SIGNALS.map(handle));
}

/// Install the handler; returns what was to be done before.
fn handle(signal: c_int) -> libc::sigaction {
    // SAFETY: all fields of the structures are numbers or may be null, and the handler has the signature that SA_SIGINFO asks for.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction =
            on_crash as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(signal, &raw const action, &raw mut before);
        before
    }
}

/// Only calls what a signal handler may call.
extern "C" fn on_crash(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes valid pointers, and strings of a `Code` are never freed.
    unsafe {
        if let Some(code) = program_counter(context).and_then(code_at) {
            let message = match signal {
                libc::SIGFPE => &code.by_zero,
                libc::SIGILL => &code.by_trap,
                _ => &code.by_memory,
            };
            libc::write(2, message.as_ptr().cast(), message.len());
            libc::_exit(2);
        }
        // Somebody else's: the instruction runs again, and what was to be done before is done.
        let index = SIGNALS.iter().position(|&s| s == signal);
        let before = index.and_then(|i| BEFORE.get()?.get(i));
        let before = before.map_or(ptr::null(), ptr::from_ref);
        if before.is_null() {
            libc::signal(signal, libc::SIG_DFL);
        } else {
            libc::sigaction(signal, before, ptr::null_mut());
        }
        let was_sent = (*info).si_code <= 0;
        if was_sent {
            libc::raise(signal);
        }
    }
}

fn code_at(address: usize) -> Option<&'static Code> {
    let mut next: *const Code = NEWEST.load(Ordering::Acquire);
    // SAFETY: every `Code` in the list is complete and never freed.
    while let Some(code) = unsafe { next.as_ref() } {
        if (code.first..code.end).contains(&address) {
            return Some(code);
        }
        next = code.next;
    }
    None
}

/// Where the thread was when the signal came; `None` on processors for which this is not known.
///
/// # Safety
/// `context` is the third argument of a signal handler.
unsafe fn program_counter(context: *const c_void) -> Option<usize> {
    let context = context.cast::<libc::ucontext_t>();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the contract of this function.
    return Some(unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize });
    #[cfg(target_arch = "aarch64")]
    // SAFETY: by the contract of this function.
    return Some(unsafe { (*context).uc_mcontext.pc as usize });
    #[allow(unreachable_code)]
    {
        let _ = context;
        None
    }
}

/// First address and end of the library that holds an address.
fn library_of(address: usize) -> Option<(usize, usize)> {
    struct Search {
        address: usize,
        found: Option<(usize, usize)>,
    }
    extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description, and the search is the caller's.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: the loader says how many headers there are.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loaded = headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
        let ranges = loaded.map(|h| {
            let first = info.dlpi_addr as usize + h.p_vaddr as usize;
            (first, first + h.p_memsz as usize)
        });
        let whole = ranges.reduce(|(first, end), (f, e)| (first.min(f), end.max(e)));
        search.found = whole.filter(|&(first, end)| (first..end).contains(&search.address));
        c_int::from(search.found.is_some())
    }
    let mut search = Search {
        address,
        found: None,
    };
    // SAFETY: `look` has the signature that the loader calls, and the search outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}
