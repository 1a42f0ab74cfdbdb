# Workloads W1, W3 and W4 of scenarios/bench in ns-2 (Debian's package ns2), which has no MPTCP for W2.
# usage: ns benches/peers/ns2.tcl WORKLOAD SECONDS
# Prints hops=N. Every segment has an ACK of its own, and each of them crosses one link. Exit code 3 if the workload needs
# what ns-2 does not have.

proc usage {} {
    puts stderr "usage: ns ns2.tcl w1|w2|w3|w4 SECONDS"
    exit 2
}

if {$argc != 2} usage
lassign $argv workload seconds
switch -- $workload {
    w1 {lassign {1 1 100Mb 10ms 167} links flows rate delay queue}
    w3 {lassign {100 1000 100Mb 10ms 167} links flows rate delay queue}
    w4 {lassign {1 1 10000Mb 5ms 8333} links flows rate delay queue}
    w2 {exit 3}
    default usage
}

# 1,500 bytes per packet on the wire. ns-2 stops at 20 packets in flight unless it is told otherwise.
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 100000
Agent/TCP set maxcwnd_ 0

set ns [new Simulator]
# Without it, ns-2 writes the headers of all its protocols into every packet.
remove-all-packet-headers
add-packet-header IP TCP Flags
for {set i 0} {$i < $links} {incr i} {
    set sender($i) [$ns node]
    set receiver($i) [$ns node]
    $ns duplex-link $sender($i) $receiver($i) $rate $delay DropTail
    $ns queue-limit $sender($i) $receiver($i) $queue
}

set starts [new RandomVariable/Uniform]
$starts set min_ 0.0
$starts set max_ 1.0
for {set i 0} {$i < $flows} {incr i} {
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $sender([expr {$i % $links}]) $tcp($i)
    $ns attach-agent $receiver([expr {$i % $links}]) $sink
    $ns connect $tcp($i) $sink
    set source [new Application/FTP]
    $source attach-agent $tcp($i)
    $ns at [expr {$flows > 1 ? [$starts value] : 0.0}] "$source start"
}

proc finish {} {
    global tcp flows
    set acked 0
    for {set i 0} {$i < $flows} {incr i} {
        incr acked [$tcp($i) set ack_]
    }
    puts "hops=[expr {2 * $acked}]"
    exit 0
}
$ns at $seconds finish
$ns run
