"""A notebook of marimo: a congestion control written in C, compared with LIA, and loaded into the kernel.

`marimo edit examples/new_algorithm.py` opens it, and `python examples/new_algorithm.py` runs it; both need
`pip install 'mptcplab[notebook]'`. The tests run it with short runs.
"""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import mptcplab

    return mo, mptcplab


@app.cell
def _():
    duration, repetitions = "60 s", 5
    return duration, repetitions


@app.cell
def _(mo):
    mo.md("""
    # A new algorithm

    Reno grows each window by 1/w per acknowledged packet, whatever its siblings do. A fully coupled rule grows it by
    1/W, where W is the sum of all windows. This one is halfway between them.
    """)
    return


@app.cell
def _():
    source = r"""
    // SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
    /* halfway: halfway between Reno and a fully coupled increase */
    #include "cc.h"

    /* (1/w + 1/W)/2 in Q40; w and W are at least 1. */
    static u64 halfway_inc_q40(struct sock *sk)
    {
        struct cc_set set;

        if (!cc_coupling_set(sk, &set))
            return cc_reno_inc_q40(sk);
        return (cc_div(CC_ONE_Q40, set.w[set.self]) + cc_div(CC_ONE_Q40, cc_total_window(&set))) / 2;
    }

    static void halfway_cong_avoid(struct sock *sk, u32 ack, u32 acked)
    {
        acked = cc_acked_after_slow_start(sk, acked);
        if (acked)
            cc_grow_per_packet(sk, acked, (s64)halfway_inc_q40(sk));
    }

    CC_COUPLED(halfway);
    CC_REGISTER(halfway,
                .ssthresh = cc_reno_ssthresh,
                .cong_avoid = halfway_cong_avoid,
                .undo_cwnd = cc_reno_undo_cwnd);
    """
    return (source,)


@app.cell
def _(mptcplab, source):
    halfway = mptcplab.Algorithm.from_source(source)
    halfway
    return (halfway,)


@app.cell
def _(duration, halfway, mptcplab, repetitions):
    def beside_lia(scenario):
        return mptcplab.run(
            scenario,
            cc=[halfway, "lia"],
            duration=duration,
            reps=repetitions,
            settings={"warmup": "5 s"},
            progress=False,
        )

    return (beside_lia,)


@app.cell
def _(mo):
    mo.md("""
    ## At a shared bottleneck

    Both subflows and one TCP connection share one link. A fair algorithm gets as much as the TCP connection.
    """)
    return


@app.cell
def _(beside_lia):
    shared = beside_lia("shared-bottleneck-fairness")
    shared.plot.goodput()
    return (shared,)


@app.cell
def _(mo):
    mo.md("""
    ## On two private paths that lose packets

    Here nobody else is disturbed, and what the coupling holds back is lost.
    """)
    return


@app.cell
def _(beside_lia):
    private = beside_lia("random-loss-link")
    private.plot.goodput()
    return (private,)


@app.cell
def _(private):
    windows = private.plot.over_time(quantities="cwnd")
    windows
    return (windows,)


@app.cell
def _(private, shared):
    import polars as pl

    table = pl.concat(
        results.summary()
        .filter(pl.col("subflow").is_null(), metric="goodput", flow="mp")
        .select(pl.lit(name).alias("scenario"), "cc", "mean", "half", "unit")
        for name, results in (("shared", shared), ("private", private))
    )
    table
    return (table,)


@app.cell
def _(mo):
    mo.md("""
    ## In the kernel

    The same text as eBPF: as root, with clang, on a kernel since Linux 6.1. The name in the kernel is `lab_halfway`.
    """)
    return


@app.cell
def _(halfway, mptcplab):
    try:
        loaded = mptcplab.cc_load(halfway)["pinned"]
        mptcplab.cc_unload("lab_halfway")
        kernel = f"loaded and unloaded: {loaded[0]['name']}"
    except mptcplab.MptcplabError as error:
        kernel = f"not loaded: {error}"
    kernel
    return (kernel,)


if __name__ == "__main__":
    app.run()
