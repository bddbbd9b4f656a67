//! What is known of the servers, as tables.

use serde_json::json;

use super::*;

fn instance(engine: DatabaseEngine, name: &str) -> Instance {
    let server = server(engine);
    let name: Name = name.parse().unwrap();
    Instance {
        port: server.port(),
        socket: server.socket(server.port()),
        datadir: server.datadir().to_owned(),
        logdir: None,
        pidfile: server.pidfile(&name, server.datadir()),
        engine,
        name,
        settings: serde_json::Map::new(),
        template: None,
        vars: serde_json::Map::new(),
    }
}

/// An instance that shares nothing with the first.
fn second(engine: DatabaseEngine) -> Instance {
    let mut second = instance(engine, "second");
    second.port += 1;
    second.socket = server(engine).socket(second.port).replace("/run/", "/tmp/");
    second.datadir.push_str("-2");
    second.pidfile = server(engine).pidfile(&second.name, &second.datadir);
    second
}

/// What clashes, in words: `main.port second.port`.
fn clash_words(first: (&Instance, &str), second: (&Instance, &str)) -> Vec<String> {
    let mut all = Vec::new();
    for (owner, (instance, config)) in [first, second].into_iter().enumerate() {
        let settings = server(instance.engine).read(config);
        all.extend(claims(owner, instance, &settings));
    }
    let word = |i: usize| {
        let name = [first.0, second.0][all[i].owner].name.as_str();
        match &all[i].origin {
            Origin::Key(key) => format!("{name}.{}", key.word()),
            Origin::Option(option) => format!("{name}.settings.{option}"),
            Origin::Absent(option) => format!("{name} without {option}"),
            Origin::File => "files".to_owned(),
        }
    };
    clashes(&all)
        .iter()
        .map(|clash| format!("{} {}", word(clash.first), word(clash.second)))
        .collect()
}

#[test]
fn two_with_defaults_share_all_but_their_pid_files() {
    let shared = |engine| {
        let (a, b) = (instance(engine, "main"), instance(engine, "second"));
        clash_words((&a, ""), (&b, ""))
    };
    let (port, socket, datadir) = (
        "main.port second.port",
        "main.socket second.socket",
        "main.datadir second.datadir",
    );
    assert_eq!(shared(DatabaseEngine::Mariadb), [port, socket, datadir]);
    assert_eq!(
        shared(DatabaseEngine::Mysql),
        [
            port,
            "main without mysqlx_port second without mysqlx_port",
            socket,
            datadir
        ]
    );
    assert_eq!(shared(DatabaseEngine::Openldap), [port, socket, datadir]);
    assert_eq!(shared(DatabaseEngine::Postgresql), [port, socket, datadir]);
}

#[test]
fn what_two_instances_cannot_share() {
    let my = DatabaseEngine::Mysql;
    let no_x = "[mysqld]\nmysqlx = OFF\n";
    type Change = fn(&mut Instance);
    let cases: [(&str, Change, &str, &str, &[&str]); 14] = [
        ("nothing shared", |_| (), no_x, no_x, &[]),
        ("one without X", |_| (), no_x, "", &[]),
        (
            "same port",
            |i| i.port = 3306,
            no_x,
            no_x,
            &["main.port second.port"],
        ),
        (
            "same port, other addresses",
            |i| i.port = 3306,
            "[mysqld]\nmysqlx=0\nbind-address = 10.0.0.1",
            "[mysqld]\nmysqlx=0\nbind_address = '10.0.0.2,127.0.0.1'",
            &[],
        ),
        (
            "same port, one on all addresses",
            |i| i.port = 3306,
            "[mysqld]\nmysqlx=0\nbind-address = 10.0.0.1",
            "[mysqld]\nmysqlx=0\nbind_address = *",
            &["main.port second.port"],
        ),
        (
            "same port, one by name",
            |i| i.port = 3306,
            "[mysqld]\nmysqlx=0\nbind-address = localhost",
            "[mysqld]\nmysqlx=0\nbind_address = 127.0.0.1",
            &["main.port second.port"],
        ),
        (
            "no network at all",
            |i| i.port = 3306,
            "[mysqld]\nmysqlx=0\nskip-networking",
            no_x,
            &[],
        ),
        (
            "X port of the other's port",
            |_| (),
            "[mysqld]\nmysqlx_port = 3307",
            no_x,
            &["main.settings.mysqlx_port second.port"],
        ),
        (
            "administrative port",
            |_| (),
            "[mysqld]\nmysqlx=0\nadmin_address = 127.0.0.1",
            "[mysqld]\nmysqlx=0\nadmin_address = 127.0.0.1\nadmin_port = 33062",
            &["main without admin_port second.settings.admin_port"],
        ),
        (
            "the other's options do not count",
            |_| (),
            "[client]\nmysqlx_port = 3307\n[mysqld]\nmysqlx = off",
            no_x,
            &[],
        ),
        (
            "socket by another name",
            |i| i.socket = "/var/run/mysqld/mysqld.sock".into(),
            no_x,
            no_x,
            &["main.socket second.socket"],
        ),
        (
            "data in the other's data",
            |i| i.datadir = "/var/lib/mysql/second".into(),
            no_x,
            no_x,
            &["main.datadir second.datadir"],
        ),
        (
            "socket in the other's data",
            |i| i.socket = "/var/lib/mysql/second.sock".into(),
            no_x,
            no_x,
            &["main.datadir second.socket"],
        ),
        (
            "logs in its own data",
            |i| i.logdir = Some(format!("{}/logs", i.datadir)),
            no_x,
            no_x,
            &["second.datadir second.logdir"],
        ),
    ];
    for (what, change, first, other, expected) in cases {
        let (main, mut second) = (instance(my, "main"), second(my));
        change(&mut second);
        let found = clash_words((&main, first), (&second, other));
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn an_instance_may_keep_its_own_files_in_its_data() {
    let mut main = instance(DatabaseEngine::Mariadb, "main");
    main.logdir = Some(main.datadir.clone());
    main.pidfile = format!("{}/pid", main.datadir);
    let other = second(DatabaseEngine::Mariadb);
    assert_eq!(clash_words((&main, ""), (&other, "")), [""; 0]);
    main.pidfile.clone_from(&main.socket);
    assert_eq!(
        clash_words((&main, ""), (&other, "")),
        ["main.socket main.pidfile"]
    );
}

#[test]
fn lines_are_read_back_as_they_were_meant() {
    let values = [
        json!(5000),
        json!("64M"),
        json!(" spaced "),
        json!("a#b"),
        json!("it's \"quoted\""),
        json!("back\\slash"),
        json!(""),
    ];
    for engine in [
        DatabaseEngine::Mariadb,
        DatabaseEngine::Mysql,
        DatabaseEngine::Postgresql,
    ] {
        for value in &values {
            let line = server(engine).line("some_option", value);
            let read = server(engine).read(&line);
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            assert_eq!(read.len(), 1, "{line}");
            assert_eq!(
                (read[0].name.as_str(), &read[0].value),
                ("some_option", &text),
                "{line}"
            );
        }
    }
    for (engine, on) in [
        (DatabaseEngine::Mariadb, "x = ON"),
        (DatabaseEngine::Postgresql, "x = 'on'"),
        (DatabaseEngine::Openldap, "x on"),
    ] {
        assert_eq!(server(engine).line("x", &json!(true)), on);
    }
    let slapd = server(DatabaseEngine::Openldap).line("index", &json!("objectClass eq"));
    assert_eq!(slapd, "index objectClass eq");
}

#[test]
fn options_that_contradict_a_key_are_found_wherever_they_stand() {
    let cases = [
        // The slip of the CRM write-up: the client looks elsewhere than the server listens.
        (
            DatabaseEngine::Mariadb,
            "[client]\nsocket = /run/mysqld/mysqld\n[mysqld]\nsocket=/run/mysqld/mysqld.sock",
            &["client socket=/run/mysqld/mysqld not /run/mysqld/mysqld.sock"][..],
        ),
        (
            DatabaseEngine::Mariadb,
            "[mysqld]\nport = 3307 # second\npid-file = \"/tmp/x\"\ndatadir=/var/lib/mysql/",
            &[
                "mysqld port=3307 not 3306",
                "mysqld pid_file=/tmp/x not /run/mysqld/main.pid",
            ],
        ),
        (
            DatabaseEngine::Mysql,
            "[mysqld]\ninnodb_log_group_home_dir = /logs",
            &["mysqld innodb_log_group_home_dir=/logs not /var/lib/mysql"],
        ),
        (
            DatabaseEngine::Postgresql,
            "port 5433 # not that one\ndata_directory = '/var/lib/postgresql/data'",
            &[" port=5433 not 5432"],
        ),
        (
            DatabaseEngine::Openldap,
            "pidfile /run/slapd/main.pid\ndatabase mdb\ndirectory /srv\ndatabase mdb\ndirectory /b",
            &["mdb directory=/srv not /var/lib/ldap"],
        ),
    ];
    for (engine, config, expected) in cases {
        let settings = server(engine).read(config);
        let found: Vec<_> = contradictions(&instance(engine, "main"), &settings)
            .into_iter()
            .map(|c| {
                let Setting {
                    section,
                    name,
                    value,
                } = c.setting;
                format!("{section} {name}={value} not {}", c.said)
            })
            .collect();
        assert_eq!(found, expected, "{config}");
    }
}
