/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A parameter that chooses between the rule of the specification and the variant of it
 * that the out-of-tree kernel (multipath-tcp.org, 0.91 to 0.95) has, so that a testbed
 * that ran that kernel can be imitated. Each file says what its dialect changes.
 */
#ifndef MPTCPLAB_DIALECT_H
#define MPTCPLAB_DIALECT_H

#include "cc.h"

#define CC_DIALECT_SPEC 0 /* the source's rule */
/* One of the CC_PARAMS. */
#define CC_DIALECT \
	CC_PARAM(dialect, .initial = CC_DIALECT_SPEC, .max = 1, .names = "spec|mptcp-0.95", \
		   .help = "the source's rule, or that of the out-of-tree kernel up to 0.95")

#define CC_IS_SPEC(alg, sk) (alg##_params(sk)->dialect == CC_DIALECT_SPEC)

#endif
