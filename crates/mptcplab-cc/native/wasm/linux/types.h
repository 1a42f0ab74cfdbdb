/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's integers for WebAssembly, a target without system headers. Only the types
 * that cc_types.h takes from <linux/types.h>.
 */
#ifndef MPTCPLAB_WASM_LINUX_TYPES_H
#define MPTCPLAB_WASM_LINUX_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;

#endif
