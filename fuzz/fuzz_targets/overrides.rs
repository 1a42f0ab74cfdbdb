#![cfg_attr(fuzzing, no_main)]
mptcplab_fuzz::fuzz_with!(mptcplab_fuzz::overrides);
