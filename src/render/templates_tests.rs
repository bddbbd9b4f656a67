//! The templates that labrig ships, filled in.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Scope, Templates, instance_config};
use crate::databases::{contradictions, server};
use crate::model::{
    Bytes, DatabaseEngine, Domain, DomainKind, GuestSettings, Impairment, Instance, Lab, Name,
    Seconds, Split, Topology, Vnet, VnetModel,
};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn domain(group: &str, index: u8, instances: Vec<Instance>) -> Domain {
    Domain {
        name: name(&format!("{group}{index}")),
        group: name(group),
        index: u32::from(index),
        kind: DomainKind::Host,
        split: Some(Split::new(2, Bytes::mib(512))),
        vnets: vec![Vnet {
            vswitch: name("data"),
            mac: format!("52:54:00:00:00:0{index}").parse().unwrap(),
            ip: Some([10, 0, 0, 10 + index].into()),
            ip6: None,
            model: VnetModel::Virtio,
            queues: 1,
            device: format!("lp{index}"),
            inbound: Impairment::default(),
            outbound: Impairment::default(),
        }],
        instances,
        settings: GuestSettings::default(),
        files: Vec::new(),
        boot_timeout: Seconds(Duration::from_secs(60)),
    }
}

fn instance(engine: DatabaseEngine, text: &str, settings: Value) -> Instance {
    let (server, name) = (server(engine), name(text));
    Instance {
        port: server.port(),
        socket: server.socket(server.port()),
        datadir: server.datadir().to_owned(),
        logdir: server.has_logdir().then(|| format!("/logs/{name}")),
        pidfile: server.pidfile(&name, server.datadir()),
        engine,
        name,
        settings: settings.as_object().unwrap().clone(),
        template: None,
        vars: serde_json::Map::new(),
    }
}

fn topology(domains: Vec<Domain>) -> Topology {
    Topology {
        lab: Lab { name: name("lab") },
        vars: serde_json::Map::new(),
        secrets: BTreeMap::new(),
        host: crate::model::LabHost::default(),
        images: BTreeMap::new(),
        vswitches: BTreeMap::new(),
        domains,
    }
}

fn shipped() -> Templates {
    Templates::at(Some(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("templates"),
    ))
}

#[test]
fn instances_without_a_template_get_labrigs_own() {
    use DatabaseEngine as E;
    let settings = json!({
        "max_connections": "{{ domain.index * 100 }}", "skip-log-bin": true, "init_connect": "SET a='#'",
        "plugin_load_add": ["auth_socket", "simple_password_check"],
    });
    let slapd = json!({"threads": 4, "index": ["uid eq", "cn eq"], "suffix": "dc=lab"});
    let domain = domain(
        "db",
        3,
        vec![
            instance(E::Mariadb, "maria", settings.clone()),
            instance(E::Mysql, "my", settings),
            instance(
                E::Postgresql,
                "pg",
                json!({"shared_buffers": "64MB", "fsync": false}),
            ),
            instance(E::Openldap, "ldap", slapd),
            instance(E::Openldap, "plain", json!({})),
        ],
    );
    let topology = topology(vec![domain]);
    let scope = Scope::new(&topology);
    let context = scope.context(Some(&topology.domains[0]), &[]);
    let mut text = String::new();
    for instance in &topology.domains[0].instances {
        let config = instance_config(&shipped(), instance, &context).unwrap();
        let _ = write!(text, "== {}\n{}\n", config.path, config.text.trim_end());
        let read = server(instance.engine).read(&config.text);
        assert_eq!(contradictions(instance, &read), [], "{}", config.text);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn shipped_templates_can_be_filled_in() {
    let mut main = instance(DatabaseEngine::Mariadb, "main", json!({}));
    main.template = Some("crm/my.cnf.tera".to_owned());
    main.vars = json!({
        "max_connections": 50, "thread_cache": 30, "buffer_pool": "64M", "log_file": "32M",
        "query_cache": "8M", "tmp_table": "16M", "heap_table": "16M", "sort_buffer": "1M",
        "join_buffer": "1M",
    })
    .as_object()
    .unwrap()
    .clone();
    let second = Instance {
        name: name("second"),
        port: 3307,
        ..main.clone()
    };
    let mut directory = instance(DatabaseEngine::Openldap, "directory", json!({}));
    directory.template = Some("directory/slapd.conf.tera".to_owned());
    directory.vars = json!({
        "connection_log": false, "threads": 4, "listener_threads": 2, "suffix": "dc=lab",
        "max_size": 1 << 26,
    })
    .as_object()
    .unwrap()
    .clone();
    let mut domains = vec![domain("primary", 1, vec![main, second, directory])];
    domains.extend((1..=3).map(|index| domain("dom", index, Vec::new())));
    let topology = topology(domains);
    let scope = Scope::new(&topology);
    let templates = shipped();
    let mut text = String::new();

    let primary = &topology.domains[0];
    let context = scope.context(Some(primary), &[]);
    for instance in &primary.instances {
        let config = instance_config(&templates, instance, &context).unwrap();
        let read = server(instance.engine).read(&config.text);
        assert_eq!(contradictions(instance, &read), [], "{}", config.text);
        let _ = write!(text, "== {}\n{}\n", config.path, config.text.trim_end());
    }
    let crm = json!({"server": "primary1", "first": 2});
    let balancer = json!({
        "worker": "dom", "workers": 3, "contexts": 2, "threads": 8, "sessions": 200,
        "application": "/srv/app", "build": "mod_jk",
    });
    let web = json!({"listen_queue": 8192, "root": "/srv/www", "children": 8});
    for (template, index, vars) in [
        ("crm/nginx.conf.tera", 1, &web),
        ("crm/php-pool.conf.tera", 1, &web),
        ("crm/php.ini.tera", 1, &web),
        ("crm/config.php.tera", 1, &crm),
        ("crm/config.php.tera", 3, &crm),
        ("balancer/server.xml.tera", 1, &balancer),
        ("balancer/httpd.conf.tera", 1, &balancer),
        ("balancer/mod_jk.conf.tera", 1, &balancer),
        ("balancer/workers.properties.tera", 1, &balancer),
        ("balancer/mod_proxy_balancer.conf.tera", 1, &balancer),
    ] {
        let context = scope.context(Some(&topology.domains[index]), &[]);
        let rendered = templates.render_with(template, vars.as_object().unwrap(), &context);
        let rendered = rendered.unwrap_or_else(|e| panic!("{template}: {e:?}"));
        let _ = write!(text, "== {template} for {index}\n{}\n", rendered.trim_end());
    }
    insta::assert_snapshot!(text);
}
