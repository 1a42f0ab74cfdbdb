//! Every algorithm can be loaded into the running kernel under its name, and leaves nothing behind.

use mptcplab_bpf::loader::is_registered;
use mptcplab_bpf::{LoadError, Options, load, runtime, system};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time. A process that a test starts holds all descriptors of this one until it has become clang, and a list of
/// what is loaded holds all that it finds; what another test drops would then stay registered for a moment.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether eBPF can be loaded here; prints the reason if it cannot.
fn possible() -> bool {
    match system::check() {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("SKIPPED, this needs a kernel that takes eBPF from us: {reason}");
            false
        }
    }
}

fn unique(tag: &str) -> String {
    format!("t{:x}_{tag}", std::process::id() & 0xffff)
}

#[test]
fn every_algorithm_loads_and_goes() {
    if !possible() {
        return;
    }
    let _turn = alone();
    for (index, algorithm) in mptcplab_cc::algorithms().iter().enumerate() {
        for record in [false, true] {
            let name = unique(&format!("{index}{}", if record { "r" } else { "" }));
            let options = Options {
                record,
                growth_per_ack: (index % 2 == 1) != record,
                // The table of record mode takes 16 copies of a connection for each.
                connections: 512,
                ..Options::named(&name)
            };
            let loaded = load(algorithm, &options)
                .unwrap_or_else(|e| panic!("{} (record {record}): {e}", algorithm.name()));
            assert!(is_registered(&name), "{}", algorithm.name());
            assert_eq!(loaded.kernel_name(), name);
            for program in loaded.programs() {
                let (what, effort) = (program.name, program.verified_instructions);
                // Kernels differ by some 20 %, and the verifier rejects a program after a million instructions.
                assert!(effort < 500_000, "{} {what}: {effort}", algorithm.name());
            }
            drop(loaded);
            assert!(!is_registered(&name), "{} stayed", algorithm.name());
        }
    }
}

#[test]
fn a_name_is_taken_once() {
    if !possible() {
        return;
    }
    let _turn = alone();
    let (lia, olia) = (
        mptcplab_cc::find("lia").unwrap(),
        mptcplab_cc::find("olia").unwrap(),
    );
    let name = unique("twice");
    let first = load(lia, &Options::named(&name)).unwrap();
    let second = load(olia, &Options::named(&name)).unwrap_err();
    assert!(matches!(second, LoadError::NameTaken { .. }), "{second}");
    drop(first);
    assert!(!is_registered(&name));
    let kernels_own = load(lia, &Options::named("reno")).unwrap_err();
    assert!(
        matches!(kernels_own, LoadError::NameTaken { .. }),
        "{kernels_own}"
    );
}

#[test]
fn bad_names_and_parameters_are_refused_before_anything_is_loaded() {
    let ewtcp = mptcplab_cc::find("ewtcp").unwrap();
    for name in ["", "sixteen-letters-", "white space", "new\nline"] {
        let error = load(ewtcp, &Options::named(name)).unwrap_err();
        assert!(
            matches!(error, LoadError::BadName { .. }),
            "{name:?}: {error}"
        );
    }
    let options = Options {
        params: vec![("wieght".into(), 1)],
        ..Options::named("lab_ewtcp")
    };
    let error = load(ewtcp, &options).unwrap_err();
    assert!(error.to_string().contains("no parameter wieght"), "{error}");
}

#[test]
fn what_is_loaded_is_listed_with_its_holder() {
    if !possible() {
        return;
    }
    use mptcplab_bpf::registered::{Holder, registered};
    let _turn = alone();
    let name = unique("listed");
    let listed = || {
        registered()
            .unwrap()
            .into_iter()
            .find(|one| one.name == name)
    };
    assert_eq!(listed(), None);
    let loaded = load(mptcplab_cc::find("balia").unwrap(), &Options::named(&name)).unwrap();
    let found = listed().expect("it is loaded");
    assert!(found.ours);
    assert_eq!(found.sockets, 0);
    let users: Vec<_> = (0..3)
        .map(|_| {
            let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            mptcplab_net::socket::set_congestion(&socket, &name).unwrap();
            socket
        })
        .collect();
    assert_eq!(listed().map(|one| one.sockets), Some(users.len() as u64));
    drop(users);
    // This process holds it, and only other processes are listed.
    let expected = if system::has_struct_ops_links() {
        Holder::Unknown
    } else {
        Holder::Nobody
    };
    assert_eq!(found.holder, expected);
    drop(loaded);
    assert_eq!(listed(), None);
}

#[test]
fn the_same_text_gives_the_same_object() {
    let _turn = alone();
    let place = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../algorithms/template-coupled.c"
    );
    let text = std::fs::read_to_string(place).unwrap();
    let compile = |text: &str| runtime::compile("template-coupled", text, "dir/mine.c");
    // Each is made in a directory of its own, whose name must not be in the object: machines count instructions.
    let object = compile(&text).unwrap();
    assert!(object == compile(&text).unwrap());
    assert!(object.starts_with(b"\x7fELF"));

    let faulty =
        format!("{text}#ifdef __bpf__\nstatic int f(void) {{ return nothing; }}\n#endif\n");
    let line = 2 + text.lines().count();
    let message = compile(&faulty).unwrap_err().to_string();
    assert!(
        message.starts_with("dir/mine.c does not compile for the kernel\n\n")
            && message.contains(&format!("dir/mine.c:{line}:29: error:")),
        "{message}"
    );
}
