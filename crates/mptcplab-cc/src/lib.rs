//! mptcplab-cc
