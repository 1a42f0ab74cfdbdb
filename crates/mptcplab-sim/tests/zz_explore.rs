mod common;
use common::simulate_one;
#[test]
fn x() {
    let text = std::fs::read_to_string(std::env::var("SC").unwrap()).unwrap();
    let from: f64 = std::env::var("FROM").unwrap_or("0".into()).parse().unwrap();
    let to: f64 = std::env::var("TO").unwrap_or("1e9".into()).parse().unwrap();
    let step: usize = std::env::var("STEP").unwrap_or("1".into()).parse().unwrap();
    let set = std::env::var("SET").unwrap_or_default();
    let set: Vec<(&str, &str)> = set
        .split(';')
        .filter(|s| !s.is_empty())
        .map(|s| s.split_once('=').unwrap())
        .collect();
    let run = simulate_one(&text, &set);
    let t = &run.outcome.tables.subflow;
    for i in (0..t.len()).step_by(step) {
        let ms = t.t_ns[i] as f64 / 1e6;
        if ms < from || ms > to {
            continue;
        }
        println!(
            "{ms:>11.3} f{} s{} st{} cwnd {} ssth {} infl {} srtt {} rto {} sent {} retx {} acked {} lost {} rx {}",
            t.flow[i],
            t.subflow[i],
            t.state[i],
            t.cwnd_pkts[i],
            t.ssthresh_pkts[i],
            t.inflight_pkts[i],
            t.srtt_us[i],
            t.rto_us[i],
            t.sent_pkts[i],
            t.retx_pkts[i],
            t.acked_pkts[i],
            t.lost_pkts[i],
            t.rx_pkts[i]
        );
    }
    let e = &run.outcome.tables.event;
    for i in 0..e.len().min(80) {
        println!(
            "EV {:>11.4} {} f{} s{} l{} {}",
            e.t_ns[i] as f64 / 1e6,
            mptcplab_trace::EventKind::ALL[e.kind[i] as usize].1,
            e.flow[i],
            e.subflow[i],
            e.link[i],
            e.value[i]
        );
    }
    let f = &run.outcome.tables.flow;
    for k in 0..run.run.flows.len() {
        let i = (0..f.len()).rev().find(|&i| f.flow[i] == k as u32).unwrap();
        println!(
            "FLOW {} delivered {} sent {} ooo {} reinj {} dup {} blocked {} goodput {}",
            run.run.flows[k].name,
            f.delivered_bytes[i],
            f.sent_bytes[i],
            f.ooo_bytes[i],
            f.reinjected_pkts[i],
            f.duplicate_pkts[i],
            f.blocked_ns[i],
            run.goodput(&run.run.flows[k].name)
        );
    }
}
