/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A parameter that chooses between the rule of the specification and what the
 * out-of-tree kernel (multipath-tcp.org, 0.91 to 0.95) made of it, so that a
 * testbed that ran it can be imitated. Each file says what its dialect changes.
 */
#ifndef MPTCPLAB_DIALECT_H
#define MPTCPLAB_DIALECT_H

#include "cc.h"

#define CC_DIALECT_SPEC 0
/* For a list of CC_PARAMS. */
#define CC_DIALECT(P)                                                                   \
	P(dialect, CC_DIALECT_SPEC, 0, 1, 1, CC_NAMES("spec|mptcp-0.95"),               \
	  "the source's rule, or that of the out-of-tree kernel up to 0.95")

#define CC_IS_SPEC(sk, alg) (CC_PARAM(sk, alg, dialect) == CC_DIALECT_SPEC)

#endif
