//! What apply.sh does to users and units, on a system of stand-ins for the programs it calls.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Programs that keep users, groups and units as files in the directory `$WORLD`.
const PROGRAMS: [(&str, &str); 7] = [
    ("id", "test -e $WORLD/user-$1"),
    ("getent", "test -e $WORLD/group-$2"),
    ("groupadd", ": >$WORLD/group-$1"),
    (
        "useradd",
        "for name; do :; done; echo \"$*\" >$WORLD/user-$name",
    ),
    (
        "usermod",
        "for name; do :; done; echo \"$*\" >$WORLD/user-$name",
    ),
    ("userdel", "rm $WORLD/user-$1"),
    (
        "systemctl",
        "[ $1 = --quiet ] && shift
        case $1 in
        is-enabled) cat $WORLD/unit-$2 2>/dev/null ;;
        mask) echo masked >$WORLD/unit-$2 ;;
        unmask) [ $(cat $WORLD/unit-$2) != masked ] || echo disabled >$WORLD/unit-$2 ;;
        enable) [ $2 != broken.service ] || { echo 'it is broken'; exit 1; }
            echo enabled >$WORLD/unit-$2 ;;
        disable) echo disabled >$WORLD/unit-$2 ;;
        esac",
    ),
];

struct System(tempfile::TempDir);

impl System {
    fn new(units: &[(&str, &str)]) -> Self {
        let system = Self(tempfile::tempdir().unwrap());
        for directory in ["bin", "world", "etc/labrig"] {
            fs::create_dir_all(system.path(directory)).unwrap();
        }
        for (name, script) in PROGRAMS {
            let path = system.path("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for (unit, state) in units {
            fs::write(system.path("world").join(format!("unit-{unit}")), state).unwrap();
        }
        system
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Boots with a seed; gives the problems.
    fn boot(&self, seed: &str, users: &str, services: &str) -> String {
        for (name, content) in [("users", users), ("services", services)] {
            let path = self.path("etc/labrig").join(name);
            match content {
                "" => drop(fs::remove_file(path)),
                content => fs::write(path, content).unwrap(),
            }
        }
        fs::write(self.path("etc/labrig/seed-id"), seed).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/render/assets/apply.sh");
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let ended = Command::new("sh")
            .arg(script)
            .arg(self.0.path())
            .env("PATH", path)
            .env("WORLD", self.path("world"))
            .output()
            .unwrap();
        assert!(
            ended.status.success() && ended.stderr.is_empty(),
            "{ended:?}"
        );
        self.read("var/lib/labrig/problems").unwrap()
    }
}

#[test]
fn users_come_change_and_go() {
    let system = System::new(&[]);
    fs::write(system.path("world/user-www-data"), "of the image").unwrap();
    let users = "app::/bin/sh:adm,web:$6$h\nsvc:system:/bin/false::\nwww-data::/bin/sh:adm:\n";
    assert_eq!(system.boot("1", users, ""), "");
    let world = |name: &str| system.read(&format!("world/{name}"));
    assert_eq!(
        world("user-app").unwrap(),
        "--shell /bin/sh --groups adm,web --password $6$h app"
    );
    assert_eq!(
        world("user-svc").unwrap(),
        "--shell /bin/false --groups  --password ! svc"
    );
    assert_eq!(
        world("user-www-data").unwrap(),
        "--shell /bin/sh --append --groups adm www-data"
    );
    assert!(world("group-web").is_some());

    assert_eq!(system.boot("2", "app::/bin/dash::\n", ""), "");
    assert_eq!(
        world("user-app").unwrap(),
        "--shell /bin/dash --groups  --password ! app"
    );
    assert_eq!(world("user-svc"), None);
    assert!(world("user-www-data").is_some(), "it is the image's");

    assert_eq!(system.boot("3", "", ""), "");
    assert_eq!(world("user-app"), None);
}

#[test]
fn units_change_and_get_their_former_state_back() {
    let system = System::new(&[
        ("a.service", "enabled"),
        ("b.timer", "masked"),
        ("broken.service", "disabled"),
    ]);
    let unit = |name: &str| system.read(&format!("world/unit-{name}")).unwrap();
    let services = "a.service masked\nb.timer enabled\n";
    assert_eq!(system.boot("1", "", services), "");
    assert_eq!(
        (unit("a.service"), unit("b.timer")),
        ("masked".into(), "enabled".into())
    );
    // A second change does not make one forget how it was at first.
    assert_eq!(
        system.boot("2", "", "a.service disabled\nb.timer enabled\n"),
        ""
    );
    assert_eq!(unit("a.service"), "disabled");
    assert_eq!(system.boot("3", "", "b.timer enabled\n"), "");
    assert_eq!(
        (unit("a.service"), unit("b.timer")),
        ("enabled".into(), "enabled".into())
    );

    let problems = system.boot("4", "", "gone.service enabled\nbroken.service enabled\n");
    assert_eq!(unit("b.timer"), "masked");
    assert_eq!(
        problems,
        "there is no unit gone.service\nunit broken.service: it is broken"
    );
}

#[test]
fn the_same_seed_is_applied_once() {
    let system = System::new(&[("a.service", "enabled")]);
    system.boot("1", "", "a.service masked\n");
    fs::write(system.path("world/unit-a.service"), "by hand").unwrap();
    system.boot("1", "", "a.service masked\n");
    assert_eq!(system.read("world/unit-a.service").unwrap(), "by hand");
}
