//! Wrong input is told with its place, and nothing is made.

use super::{PAIR, pair};

/// A row of wrong input: what is changed in [`PAIR`] to what, and what is said about it where.
struct Wrong {
    old: &'static str,
    new: &'static str,
    message: &'static str,
    place: &'static str,
    hint: &'static str,
}

const WRONG: [Wrong; 8] = [
    Wrong {
        old: "    image: micro\n",
        new: "    image: micro\n    boot_timout: 1m\n",
        message: "boot_timout",
        place: "topology.yaml:11:5",
        hint: "boot_timeout",
    },
    Wrong {
        old: "memory: 160MiB",
        new: "memory: 160M",
        message: "160M",
        place: "topology.yaml:11:30",
        hint: "MiB",
    },
    Wrong {
        old: "{vswitch: data, ip: 10.10.0.11}",
        new: "{vswitch: dat, ip: 10.10.0.11}",
        message: "dat",
        place: "topology.yaml:12:23",
        hint: "data",
    },
    Wrong {
        old: "10.10.0.12",
        new: "10.10.0.11",
        message: "10.10.0.11",
        place: "topology.yaml:17:33",
        hint: "",
    },
    Wrong {
        old: "template: motd.tera",
        new: "template: mod.tera",
        message: "mod.tera",
        place: "topology.yaml:13:24",
        hint: "motd.tera",
    },
    Wrong {
        old: "vars: {greeting: hello}",
        new: "vars: {greting: hello}",
        message: "greeting",
        place: "motd.tera:1:",
        hint: "",
    },
    Wrong {
        old: "{build: {micro: {}}}",
        new: "{path: gone.qcow2}",
        message: "gone.qcow2",
        place: "topology.yaml:4:17",
        hint: "relative to the topology",
    },
    Wrong {
        old: "memory: 160MiB",
        new: "memory: 900GiB",
        message: "the domains take",
        place: "topology.yaml:11:30",
        hint: "less memory",
    },
];

#[test]
fn wrong_input_is_told_with_its_place_and_makes_nothing() {
    let lab = pair();
    for Wrong {
        old,
        new,
        message,
        place,
        hint,
    } in WRONG
    {
        lab.write("topology.yaml", PAIR.replacen(old, new, 1));
        lab.up()
            .exits(3)
            .says("error: ")
            .says(message)
            .says(place)
            .says(hint);
        let told = lab.labrig(["up", "topology.yaml", "--json"]).exits(3);
        let told: serde_json::Value = serde_json::from_str(&told.stderr).unwrap();
        let notes = told["notes"].as_array().unwrap();
        let says = |note: &&serde_json::Value| note["message"].as_str().unwrap().contains(message);
        let note = notes.iter().find(says).unwrap();
        assert!(note["place"]["line"].as_u64() > Some(0), "{note}");
        assert!(!lab.state().join("labs").exists(), "{new} made something");
    }
}
