//! Passes the build's provenance to the compiler.

fn main() {
    mptcplab_build::provenance::emit();
}
