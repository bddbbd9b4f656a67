//! Guest settings and instances, on a guest that really has them.

use super::SOLO;
use super::common::Lab;

const SETTINGS: &str = "    \
    sysctl: {net.core.somaxconn: 1000, net.ipv4.tcp_rmem: 4096  87380 6291456, vm.swappiness: 1}
    limits: {nofile: {soft: 2000, hard: 3000}, memlock: 8MiB, nproc: 500}
    ssh_keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH/lcCGwGGAFSCtJMjiFVbwFd5AwPAqEnJ3WxSR1+22W me]
    databases:
      main: {engine: mariadb, settings: {max_connections: \"{{ 100 * domain.index }}\"}}
";

#[test]
fn settings_hold_and_go_and_what_the_kernel_refuses_is_named() {
    let lab = Lab::new("solo", &format!("{SOLO}{SETTINGS}"));
    lab.up().exits(0);
    let sysctls =
        "cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_rmem /proc/sys/vm/swappiness";
    assert_eq!(lab.exec("a", sysctls), "1000\n4096\t87380\t6291456\n1");
    let limits = "ulimit -Sn; ulimit -Hn; ulimit -l; ulimit -u";
    assert_eq!(lab.exec("a", limits), "2000\n3000\n8192\n500");
    assert_eq!(lab.exec("a", "wc -l </root/.ssh/authorized_keys"), "2");
    let config = lab.exec("a", "cat /etc/labrig/instances/main.cnf");
    assert!(config.contains("max_connections = 100"), "{config}");

    // A value the kernel does not take, and a parameter it does not have.
    for (wrong, said) in [
        (
            "{vm.swappiness: 1000}",
            "sysctl vm.swappiness is 60, not 1000",
        ),
        (
            "{net.core.nope: 1}",
            "the kernel has no sysctl net.core.nope",
        ),
    ] {
        lab.write("topology.yaml", format!("{SOLO}    sysctl: {wrong}\n"));
        lab.up().exits(4).says("give a its settings").says(said);
        // It is not forgotten.
        lab.up().exits(4).says(said);
    }

    // Nothing is left of them.
    lab.write("topology.yaml", SOLO);
    lab.up().exits(0);
    assert_eq!(
        lab.exec("a", "cat /proc/sys/vm/swappiness; ulimit -Sn"),
        "60\n1024"
    );
    lab.exec("a", "test ! -e /etc/labrig/check");
    lab.down().exits(0);
}
