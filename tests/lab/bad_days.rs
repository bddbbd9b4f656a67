//! Killed and interrupted commands, and guests that do not come up.

use std::fs;

use nix::sys::signal::Signal;

use super::SOLO;
use super::common::Lab;

#[test]
fn a_killed_up_is_taken_down_or_gone_on_with() {
    let lab = Lab::new("solo", SOLO);
    // Before the host is there, while networks and domains are made, while the guest boots.
    for moment in ["provide image micro", "define network", "a: started"] {
        let up = lab.start(["up", "topology.yaml"]);
        up.until_it_says(moment).signal(Signal::SIGKILL);
        up.end().dies_of(Signal::SIGKILL);
        lab.down().exits(0);
        lab.assert_nothing_left();
    }
    for moment in ["define network", "a: started"] {
        let up = lab.start(["up", "topology.yaml"]);
        up.until_it_says(moment).signal(Signal::SIGKILL);
        up.end().dies_of(Signal::SIGKILL);
        lab.up().exits(0);
        assert_eq!(lab.exec("a", "hostname"), "a");
        lab.down().exits(0);
        lab.assert_nothing_left();
    }
}

/// A lab of one guest with this image that is given up after some time.
fn doomed(image: &str, boot_timeout: &str) -> Lab {
    let topology = format!(
        "\
version: 1
name: doomed
images:
  own: {image}
vswitches:
  data: {{subnet: 10.10.0.0/24}}
domains:
  a:
    image: own
    split: {{cpus: 1, memory: 160MiB}}
    vnets: [{{vswitch: data}}]
    boot_timeout: {boot_timeout}
"
    );
    Lab::new("doomed", &topology)
}

#[test]
fn a_guest_that_panics_shows_its_console() {
    let good = Lab::new("solo", SOLO);
    let kernel = good.micro_image().kernel.unwrap();
    // Without its initial RAM disk the kernel finds nothing to boot from.
    let lab = doomed(&format!("{{kernel: {}}}", kernel.display()), "20s");
    let up = lab
        .up()
        .exits(4)
        .says("| the last lines of a's console:")
        .says("Kernel panic");
    assert!(up.took.as_secs() < 60, "{:?}", up.took);
    lab.down().exits(0);
    lab.assert_nothing_left();
}

#[test]
fn a_guest_that_never_says_anything_is_given_up() {
    let lab = doomed("{path: empty.img}", "3s");
    lab.write("empty.img", vec![0; 1 << 20]);
    lab.up()
        .exits(4)
        .says("reach a's SSH port")
        .says("within 3s")
        .says("boot_timeout");
    // It is there to be looked at, and is no obstacle.
    assert_eq!(lab.status("a")["state"], "running");
    lab.down().exits(0);
    lab.assert_nothing_left();
}

#[test]
fn a_kernel_that_is_none_is_refused_at_once() {
    let lab = doomed("{kernel: garbage}", "20s");
    lab.write("garbage", [b"no kernel\n".as_slice(); 1000].concat());
    lab.up().exits(4).says("start domain a");
    lab.down().exits(0);
    lab.assert_nothing_left();
}

#[test]
fn a_guest_whose_boot_never_ends_is_given_up() {
    let lab = unready("5m");
    let up = lab.start(["up", "topology.yaml"]);
    up.until_it_says("a: logged in").signal(Signal::SIGKILL);
    up.end().dies_of(Signal::SIGKILL);
    // How long it may take is no part of what the guest is: it goes on, and is waited for anew.
    let topology = fs::read_to_string(lab.path("topology.yaml")).unwrap();
    lab.write("topology.yaml", topology.replace("5m", "3s"));
    lab.up()
        .exits(4)
        .does_not_say("start domain")
        .says("see a take its seed and end its boot within 3s");
}

/// A guest that answers on SSH but is never ready: its seed brings another script for that.
fn unready(boot_timeout: &str) -> Lab {
    let file = "files: [{template: idle.tera, to: /lib/labrig/ready, mode: \"0755\"}]";
    let lab = Lab::new(
        "solo",
        &format!("{SOLO}    {file}\n    boot_timeout: {boot_timeout}\n"),
    );
    lab.write("templates/idle.tera", "#!/bin/sh\nexec sleep 3600\n");
    lab
}

#[test]
fn ctrl_c_stops_an_up_and_leaves_what_down_removes() {
    let lab = Lab::new("solo", SOLO);
    let up = lab.start(["up", "topology.yaml"]);
    up.until_it_says("a: started").signal(Signal::SIGINT);
    up.end()
        .exits(5)
        .says("interrupted\n  hint: `labrig down solo` removes what is there");
    lab.down().exits(0);
    lab.assert_nothing_left();
}

#[test]
fn ctrl_c_ends_the_wait_for_an_image() {
    let lab = Lab::with_own_images("solo", SOLO);
    let _made_by_another = lab.hold_image_lock();
    let up = lab.start(["up", "topology.yaml"]);
    up.until_it_says("waiting for another labrig")
        .signal(Signal::SIGINT);
    up.end().exits(5).says("stopping").says("interrupted");
}

#[test]
fn only_one_labrig_changes_a_lab_at_a_time() {
    let lab = Lab::new("solo", SOLO);
    let first = lab.start(["up", "topology.yaml"]);
    first.until_it_says("a: started");
    let owner = format!("another labrig is at it (up, process {})", first.pid());
    lab.up().exits(4).says(&owner);
    lab.down().exits(4).says(&owner);
    first.end().exits(0);
    assert_eq!(lab.exec("a", "hostname"), "a");
}
