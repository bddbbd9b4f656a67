# Tries in a throw-away network namespace what impairments are made of. Prints a line each: the
# part, `good` or `missing`, and what the kernel said.
try() {
    part=$1
    shift
    if said=$("$@" 2>&1); then
        echo "$part good"
    else
        echo "$part missing $(printf '%s' "$said" | tr '\n' ' ')"
    fi
}
redirect() {
    ip link add labrig1 type ifb &&
        ip link set labrig1 up &&
        tc qdisc add dev labrig0 handle ffff: ingress &&
        tc filter add dev labrig0 parent ffff: protocol all prio 1 u32 match u32 0 0 \
            action mirred egress redirect dev labrig1
}

ip link add labrig0 type bridge
try tbf tc qdisc add dev labrig0 root handle 1: tbf rate 10mbit burst 32kbit latency 50ms
tc qdisc del dev labrig0 root 2>/dev/null
try netem tc qdisc add dev labrig0 root handle 1: netem delay 1ms loss 1%
try redirect redirect
exit 0
