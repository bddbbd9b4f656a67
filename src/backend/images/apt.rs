//! The host's own package sources, as arguments for mmdebstrap.

use crate::backend::tool::Tool;

/// Where packages of one suite come from, the host's way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// `sources.list` lines; empty: mmdebstrap's default for the suite.
    lines: Vec<String>,
    /// `apt.conf` settings for fetching: proxies, checks of dates.
    options: Vec<String>,
}

/// What `apt-get indextargets` prints of one source.
const FORMAT: &str = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SIGNED_BY)";

impl Sources {
    /// Asks the host's apt. A host without apt, or with another suite, gets mmdebstrap's default
    /// mirror.
    pub fn of_host(suite: &str) -> Self {
        let ask = |tool: Tool| {
            tool.run()
                .map(|b| String::from_utf8_lossy(&b).into_owned())
                .unwrap_or_default()
        };
        let targets =
            Tool::new("apt-get").args(["indextargets", "--format", FORMAT, "Created-By: Packages"]);
        Self {
            lines: source_lines(&ask(targets), suite),
            options: fetch_options(&ask(Tool::new("apt-config").arg("dump"))),
        }
    }

    /// Arguments that go before the suite.
    pub fn options(&self) -> impl Iterator<Item = String> {
        self.options.iter().map(|o| format!("--aptopt={o}"))
    }

    /// Arguments that go after the target.
    pub fn mirrors(&self) -> &[String] {
        &self.lines
    }
}

/// The suite itself, its updates and its security updates; component main alone, since that is
/// where all recipes take packages from.
fn source_lines(targets: &str, suite: &str) -> Vec<String> {
    let wanted = [
        suite.to_owned(),
        format!("{suite}-updates"),
        format!("{suite}-security"),
    ];
    let mut lines = Vec::new();
    for target in targets.lines() {
        let mut fields = target.splitn(4, '|');
        let mut next = || fields.next().unwrap_or_default();
        let (uri, release, component, key) = (next(), next(), next(), next());
        if component != "main" || !wanted.iter().any(|w| w == release) {
            continue;
        }
        // apt leaves the name of an unset field as it is; only a path means something elsewhere.
        let signed_by = if key.starts_with('/') {
            format!("[signed-by={key}] ")
        } else {
            String::new()
        };
        let line = format!("deb {signed_by}{uri} {release} main");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    // Updates without the suite they update are of no use.
    let has_suite = lines.iter().any(|l| l.ends_with(&format!(" {suite} main")));
    if has_suite { lines } else { Vec::new() }
}

/// Settings that decide whether a download works here.
fn fetch_options(dump: &str) -> Vec<String> {
    const PREFIXES: [&str; 5] = [
        "Acquire::http::",
        "Acquire::https::",
        "Acquire::Check-",
        "Acquire::Retries",
        "Acquire::ForceIPv",
    ];
    dump.lines()
        .filter(|line| PREFIXES.iter().any(|p| line.starts_with(p)))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: &str = "\
http://deb.example/debian/|bookworm|main|$(SIGNED_BY)
http://deb.example/debian/|bookworm|contrib|$(SIGNED_BY)
http://deb.example/debian/|bookworm-updates|main|/usr/share/keyrings/a.gpg
http://deb.example/debian/|bookworm-backports|main|$(SIGNED_BY)
https://other.example/|nodistro|main|$(SIGNED_BY)
http://deb.example/security/|bookworm-security|main|
";

    #[test]
    fn takes_the_suite_with_its_updates_and_nothing_else() {
        assert_eq!(
            source_lines(TARGETS, "bookworm"),
            [
                "deb http://deb.example/debian/ bookworm main",
                "deb [signed-by=/usr/share/keyrings/a.gpg] http://deb.example/debian/ bookworm-updates main",
                "deb http://deb.example/security/ bookworm-security main",
            ]
        );
    }

    #[test]
    fn another_suite_is_left_to_the_default() {
        assert!(source_lines(TARGETS, "trixie").is_empty());
        assert!(source_lines("", "bookworm").is_empty());
    }

    #[test]
    fn keeps_what_downloads_need() {
        let dump = "APT::Architecture \"amd64\";\nAcquire::http::Proxy \"http://p:1\";\nAcquire::Check-Date \"false\";\n";
        assert_eq!(
            fetch_options(dump),
            [
                "Acquire::http::Proxy \"http://p:1\";",
                "Acquire::Check-Date \"false\";"
            ]
        );
    }
}
