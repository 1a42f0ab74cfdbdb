//! Says which algorithm's file ends the process: what a person has written may divide by zero, follow a wrong pointer, or have a
//! loop without an end.

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
    by_time: String,
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
        by_time: format!(
            "\nerror: {place}: the algorithm does not return, so that the run cannot stop\n\nhint: look for a loop without \
             an end; the kernel's verifier refuses those\n"
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

/// Processor time that an algorithm has to return once the run is to stop, and between two looks at where it is.
const GRACE: libc::timeval = libc::timeval {
    tv_sec: 2,
    tv_usec: 0,
};
const BETWEEN: libc::timeval = libc::timeval {
    tv_sec: 0,
    tv_usec: 100_000,
};

/// A run is to stop: until this is dropped, an algorithm of a person's file that does not return ends the process with exit code
/// 2, as a crash does.
#[derive(Debug)]
#[must_use]
pub struct EndlessLoopWatch(());

impl EndlessLoopWatch {
    /// Begin to watch.
    pub fn new() -> Self {
        if !NEWEST.load(Ordering::Acquire).is_null() {
            handle_with(libc::SIGPROF, on_time);
            set_timer(GRACE, BETWEEN);
        }
        Self(())
    }
}

impl Default for EndlessLoopWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for EndlessLoopWatch {
    fn drop(&mut self) {
        if !NEWEST.load(Ordering::Acquire).is_null() {
            let never = libc::timeval {
                tv_sec: 0,
                tv_usec: 0,
            };
            set_timer(never, never);
        }
    }
}

/// Have SIGPROF sent to whatever thread uses the processor.
fn set_timer(first: libc::timeval, then: libc::timeval) {
    let timer = libc::itimerval {
        it_value: first,
        it_interval: then,
    };
    // SAFETY: the structure outlives the call.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) };
}

/// Only calls what a signal handler may call.
extern "C" fn on_time(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid pointer, and strings of a `Code` are never freed.
    unsafe {
        if let Some(code) = program_counter(context).and_then(code_at) {
            libc::write(2, code.by_time.as_ptr().cast(), code.by_time.len());
            libc::_exit(2);
        }
    }
}

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// Install the handler of crashes; returns what was to be done before.
fn handle(signal: c_int) -> libc::sigaction {
    handle_with(signal, on_crash)
}

fn handle_with(signal: c_int, handler: Handler) -> libc::sigaction {
    // SAFETY: all fields of the structures are numbers or may be null, and the handler has the signature that SA_SIGINFO asks for.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
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
