# Tries in a throw-away network namespace what vswitches are made of. Prints a line each: the
# feature, `good` or `missing`, and what the kernel said.
try() {
    feature=$1
    shift
    if said=$("$@" 2>&1); then
        echo "$feature good"
    else
        echo "$feature missing $(printf '%s' "$said" | tr '\n' ' ')"
    fi
}

ip link set lo up
try bridge ip link add labrig0 type bridge
try tap ip tuntap add labrig1 mode tap
try veth ip link add labrig2 type veth peer name labrig3
try vxlan ip link add labrig4 type vxlan id 7 local 127.0.0.1 dev lo dstport 4789
# A bridge is there even where veth is not.
try 802.1q ip link add link labrig0 name labrig5 type vlan id 7
try tbf tc qdisc add dev labrig0 root tbf rate 10mbit burst 32kbit latency 50ms
tc qdisc del dev labrig0 root 2>/dev/null
try netem tc qdisc add dev labrig0 root netem delay 1ms
tc qdisc del dev labrig0 root 2>/dev/null
redirect() {
    ip link add labrig6 type ifb &&
        ip link set labrig6 up &&
        tc qdisc add dev labrig0 handle ffff: ingress &&
        tc filter add dev labrig0 parent ffff: protocol all prio 1 u32 match u32 0 0 \
            action mirred egress redirect dev labrig6
}
try ifb redirect
try nat iptables -t nat -A POSTROUTING -j MASQUERADE
