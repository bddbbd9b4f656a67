//! temporary
use crate::model::*;
/// x
pub fn facts(a: Acceleration, _: Option<String>) -> std::io::Result<HostFacts> {
    Ok(HostFacts {
        acceleration: a,
        cpu_model: "".into(),
        threads: 2,
        memory: Bytes::mib(20000),
        memory_free: Bytes::mib(20000),
        kernel: "".into(),
        libvirt: "".into(),
        qemu: "".into(),
    })
}
