//! Measures the shape of this host: threads, cores, NUMA nodes, memory, huge pages.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use fs_err as fs;
use nix::sched::{CpuSet as Affinity, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::host::memory_field;
use crate::model::{Bytes, CpuSet, HostNode, HostShape, HostThread, HugePages};
use crate::ports::{ErrorKind, PortError};

/// Measures this host, as far as this process may use it.
///
/// # Errors
/// When `/sys`, `/proc` or the scheduler does not say what every Linux does.
pub fn shape() -> Result<HostShape, PortError> {
    shape_below(Path::new("/"), &usable_cpus()?)
}

/// Hardware threads this process might run on when it asked first: fewer than there are under
/// `taskset` or a batch system. [`keep_to`] does not change that.
pub fn usable_cpus() -> Result<CpuSet, PortError> {
    static USABLE: OnceLock<CpuSet> = OnceLock::new();
    if let Some(usable) = USABLE.get() {
        return Ok(usable.clone());
    }
    let set = sched_getaffinity(Pid::from_raw(0))
        .map_err(|e| PortError::fatal("ask for the usable CPUs", e))?;
    let cpus = (0..Affinity::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    let usable = cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    Ok(USABLE.get_or_init(|| usable).clone())
}

/// Keeps this thread, and all threads and programs that it starts from now on, to the CPUs that are
/// the host's own; anywhere when there are none. libvirt gives guests CPUs of theirs.
///
/// # Errors
/// When the kernel refuses.
pub fn keep_to(reserve: &CpuSet) -> Result<(), PortError> {
    if reserve.is_empty() {
        return Ok(());
    }
    usable_cpus()?;
    let failed = |e| PortError::fatal(format!("keep labrig to the CPUs {reserve}"), e);
    let mut set = Affinity::new();
    for cpu in reserve.iter() {
        set.set(cpu as usize).map_err(failed)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(failed)
}

/// The same for the `/sys` and `/proc` below `root`, as far as the CPUs `usable` reach.
fn shape_below(root: &Path, usable: &CpuSet) -> Result<HostShape, PortError> {
    let nodes = nodes(root)?;
    let node_of: BTreeMap<u32, u32> = nodes
        .iter()
        .flat_map(|(node, cpus)| cpus.iter().map(|cpu| (cpu, node.node)))
        .collect();
    let mut cores: BTreeMap<u32, u32> = BTreeMap::new();
    let mut threads = Vec::new();
    for cpu in usable.iter() {
        let topology = root.join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
        // A virtual machine may tell nothing: then each thread is a core of its own.
        let siblings = read_set(&topology.join("thread_siblings_list"))?;
        let first = siblings.iter().next().unwrap_or(cpu);
        let next = u32::try_from(cores.len()).unwrap_or(u32::MAX);
        threads.push(HostThread {
            cpu,
            core: *cores.entry(first).or_insert(next),
            socket: read_number(&topology.join("physical_package_id")).unwrap_or(0) as u32,
            node: node_of.get(&cpu).copied().unwrap_or(0),
        });
    }
    Ok(HostShape {
        threads,
        nodes: nodes.into_iter().map(|(node, _)| node).collect(),
    })
}

/// NUMA nodes with their CPUs; one with everything where the kernel knows of none.
fn nodes(root: &Path) -> Result<Vec<(HostNode, CpuSet)>, PortError> {
    let directory = root.join("sys/devices/system/node");
    let mut nodes = Vec::new();
    for node in read_set(&directory.join("online"))?.iter() {
        let directory = directory.join(format!("node{node}"));
        let meminfo = fs::read_to_string(directory.join("meminfo"))?;
        // Its lines begin with `Node 0 `.
        let prefix = format!("Node {node} ");
        let meminfo = meminfo.replace(&prefix, "");
        let node = HostNode {
            node,
            memory: memory_field(&meminfo, "MemTotal")?,
            hugepages: hugepages(&directory.join("hugepages")),
        };
        nodes.push((node, read_set(&directory.join("cpulist"))?));
    }
    if nodes.is_empty() {
        let meminfo = fs::read_to_string(root.join("proc/meminfo"))?;
        let node = HostNode {
            node: 0,
            memory: memory_field(&meminfo, "MemTotal")?,
            hugepages: hugepages(&root.join("sys/kernel/mm/hugepages")),
        };
        nodes.push((node, CpuSet::default()));
    }
    Ok(nodes)
}

/// Huge pages by size, from a directory with one below it for each size, as in `hugepages-2048kB`.
fn hugepages(directory: &Path) -> BTreeMap<Bytes, HugePages> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            let pages = HugePages {
                total: read_number(&entry.path().join("nr_hugepages"))?,
                free: read_number(&entry.path().join("free_hugepages"))?,
            };
            Some((Bytes(kib.parse::<u64>().ok()? << 10), pages))
        })
        .collect()
}

/// A list of CPUs or nodes; empty when the file is not there.
fn read_set(path: &Path) -> Result<CpuSet, PortError> {
    let Ok(text) = fs::read_to_string(path) else {
        return Ok(CpuSet::default());
    };
    CpuSet::try_from(text.trim().to_owned()).map_err(|e| {
        PortError::new(ErrorKind::Fatal, format!("understand {}", path.display())).because(e)
    })
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, content: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Two sockets, each a node, of two cores with two threads numbered as Intel's are.
    fn two_nodes(root: &Path) {
        write(root, "sys/devices/system/node/online", "0-1\n");
        for (node, cpus) in [(0, "0-1,4-5"), (1, "2-3,6-7")] {
            let directory = format!("sys/devices/system/node/node{node}");
            write(root, &format!("{directory}/cpulist"), &format!("{cpus}\n"));
            let meminfo =
                format!("Node {node} MemTotal:       2048 kB\nNode {node} MemFree: 1 kB\n");
            write(root, &format!("{directory}/meminfo"), &meminfo);
            let pages = format!("{directory}/hugepages/hugepages-2048kB");
            write(root, &format!("{pages}/nr_hugepages"), "8\n");
            write(root, &format!("{pages}/free_hugepages"), "3\n");
        }
        for cpu in 0..8 {
            let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            let siblings = format!("{},{}\n", cpu % 4, cpu % 4 + 4);
            write(root, &format!("{topology}/thread_siblings_list"), &siblings);
            let socket = format!("{}\n", cpu % 4 / 2);
            write(root, &format!("{topology}/physical_package_id"), &socket);
        }
    }

    #[test]
    fn reads_what_linux_shows() {
        let place = tempfile::tempdir().unwrap();
        two_nodes(place.path());
        let shape = shape_below(place.path(), &"0-7".parse().unwrap()).unwrap();
        let cores: Vec<_> = shape
            .cores()
            .iter()
            .map(|core| format!("{}:{}", core.node, core.cpus))
            .collect();
        assert_eq!(cores, ["0:0,4", "0:1,5", "1:2,6", "1:3,7"]);
        assert_eq!(shape.thread(6).unwrap().socket, 1);
        assert_eq!(shape.memory(), Bytes::mib(4));
        let pages = shape.hugepages()[&Bytes::mib(2)];
        assert_eq!((pages.total, pages.free), (16, 6));
    }

    #[test]
    fn only_what_may_be_used_counts() {
        let place = tempfile::tempdir().unwrap();
        two_nodes(place.path());
        let shape = shape_below(place.path(), &"1,3,7".parse().unwrap()).unwrap();
        let cores = shape.cores();
        let cpus: Vec<_> = cores.iter().map(|core| core.cpus.to_string()).collect();
        assert_eq!(cpus, ["1", "3,7"]);
    }

    #[test]
    fn a_kernel_without_numa_has_one_node() {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), "proc/meminfo", "MemTotal:       1024 kB\n");
        let shape = shape_below(place.path(), &"0-1".parse().unwrap()).unwrap();
        assert_eq!(shape.nodes.len(), 1);
        assert_eq!(shape.cores().len(), 2);
        assert_eq!(shape.memory(), Bytes::mib(1));
    }

    #[test]
    fn who_keeps_to_a_cpu_still_knows_the_others() {
        let usable = usable_cpus().unwrap();
        let first: CpuSet = usable.iter().take(1).collect();
        // A thread of its own: the other tests go on anywhere.
        let kept = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                keep_to(&first).unwrap();
                let now = sched_getaffinity(Pid::from_raw(0)).unwrap();
                let now = (0..Affinity::count()).filter(|cpu| now.is_set(*cpu).unwrap());
                (
                    now.map(|cpu| cpu as u32).collect::<CpuSet>(),
                    usable_cpus().unwrap(),
                )
            });
            thread.join().unwrap()
        });
        assert_eq!(kept, (first, usable));
        assert!(keep_to(&CpuSet::default()).is_ok());
    }

    #[test]
    fn this_host_has_a_shape() {
        let shape = shape().unwrap();
        assert!(!shape.threads.is_empty() && shape.memory() > Bytes(0));
        assert!(shape.nodes.iter().all(|node| !node.memory.eq(&Bytes(0))) || shape.nodes.len() > 1);
    }
}
