//! Where a running domain is on its host, and moving it. The calls that `virt` has no name for are
//! made on libvirt itself.

use std::ptr;

use virt::connect::Connect;
use virt::domain::Domain;
use virt::error::{Error, ErrorNumber};
use virt::sys;

use super::LibvirtError;
use crate::model::{Bytes, CpuSet, Placement, Split};

/// What is changed is the running domain alone: its definition says so already.
const LIVE: u32 = sys::VIR_DOMAIN_AFFECT_LIVE;

/// Reads where a running domain is. What this kind of domain cannot tell stays empty.
pub(super) fn read(
    connect: &Connect,
    domain: &Domain,
    name: &str,
) -> Result<Placement, LibvirtError> {
    let call = |what: &str| format!("ask {what} of domain {name}");
    let info = domain
        .info()
        .map_err(LibvirtError::call(call("for the memory")))?;
    let count = info.nr_virt_cpu as usize;
    let bytes = map_length(connect).map_err(LibvirtError::call(call("for the host's CPUs")))?;
    let vcpus = known(vcpus(domain, count, bytes))
        .map_err(LibvirtError::call(call("for the CPUs")))?
        .unwrap_or_else(|| vec![CpuSet::default(); count]);
    let emulator = known(emulator(domain, bytes))
        .map_err(LibvirtError::call(call("for the emulator's CPUs")))?
        .unwrap_or_default();
    let io_threads = known(io_threads(domain))
        .map_err(LibvirtError::call(call("for the I/O threads")))?
        .unwrap_or_default();
    Ok(Placement {
        vcpus,
        emulator,
        io_threads,
        memory: Bytes(info.memory << 10),
        // Without control groups libvirt takes shares and says nothing; only this fails.
        shares: domain
            .scheduler_parameters()
            .ok()
            .and_then(|parameters| parameters.cpu_shares),
    })
}

/// Moves a running domain to where its split says.
pub(super) fn move_to(
    connect: &Connect,
    domain: &Domain,
    name: &str,
    split: &Split,
) -> Result<(), LibvirtError> {
    let call = || format!("move domain {name}");
    let bytes = map_length(connect).map_err(LibvirtError::call(call()))?;
    for (vcpu, cpus) in (0..).zip(&split.pins) {
        domain
            .pin_vcpu_flags(vcpu, &to_map(cpus, bytes), LIVE)
            .map_err(LibvirtError::call(call()))?;
    }
    let Some(emulator) = &split.emulator else {
        return Ok(());
    };
    let mut map = to_map(emulator, bytes);
    domain
        .pin_emulator(&map, LIVE)
        .map_err(LibvirtError::call(call()))?;
    for thread in 1..=split.io_threads {
        // SAFETY: the pointer is that of a live `Domain`; the map is read, and as long as it says.
        let result = unsafe {
            let length = length(map.len());
            sys::virDomainPinIOThread(domain.as_ptr(), thread, map.as_mut_ptr(), length, LIVE)
        };
        succeeded(result).map_err(LibvirtError::call(call()))?;
    }
    Ok(())
}

/// None for what the hypervisor of a domain does not know.
fn known<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(e)
            if e.code()
                .is_known_and(|code| matches!(code, ErrorNumber::NoSupport)) =>
        {
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// The CPUs that the kernel lets each virtual CPU run on.
fn vcpus(domain: &Domain, count: usize, bytes: usize) -> Result<Vec<CpuSet>, Error> {
    // SAFETY: a plain structure of numbers, for which zeroes are values.
    let mut info: Vec<sys::virVcpuInfo> = vec![unsafe { std::mem::zeroed() }; count];
    let mut maps = vec![0_u8; count * bytes];
    // SAFETY: the pointer is that of a live `Domain`; both arrays are as long as it says.
    let found = succeeded(unsafe {
        sys::virDomainGetVcpus(
            domain.as_ptr(),
            info.as_mut_ptr(),
            length(count),
            maps.as_mut_ptr(),
            length(bytes),
        )
    })?;
    let maps = maps.chunks(bytes.max(1)).take(found);
    Ok(maps.map(from_map).collect())
}

fn emulator(domain: &Domain, bytes: usize) -> Result<CpuSet, Error> {
    let mut map = vec![0_u8; bytes];
    // SAFETY: the pointer is that of a live `Domain`; the map is as long as it says.
    let found = succeeded(unsafe {
        let length = length(bytes);
        sys::virDomainGetEmulatorPinInfo(domain.as_ptr(), map.as_mut_ptr(), length, LIVE)
    })?;
    Ok(if found == 0 {
        CpuSet::default()
    } else {
        from_map(&map)
    })
}

/// The CPUs that the kernel lets each I/O thread run on, by number.
fn io_threads(domain: &Domain) -> Result<Vec<CpuSet>, Error> {
    let mut list: *mut sys::virDomainIOThreadInfoPtr = ptr::null_mut();
    // SAFETY: the pointer is that of a live `Domain`; libvirt allocates the list.
    let found =
        succeeded(unsafe { sys::virDomainGetIOThreadInfo(domain.as_ptr(), &mut list, LIVE) })?;
    let mut threads: Vec<(u32, CpuSet)> = Vec::with_capacity(found);
    for index in 0..found {
        // SAFETY: the list has `found` entries, each of them ours to free; a map is as long as its
        // entry says.
        unsafe {
            let entry = *list.add(index);
            let bytes = usize::try_from((*entry).cpumaplen).unwrap_or_default();
            let map = match (*entry).cpumap.is_null() {
                true => &[],
                false => std::slice::from_raw_parts((*entry).cpumap.cast_const(), bytes),
            };
            threads.push(((*entry).iothread_id, from_map(map)));
            sys::virDomainIOThreadInfoFree(entry);
        }
    }
    // SAFETY: libvirt allocated the list with the C library's allocator; freeing null is nothing.
    unsafe { libc::free(list.cast()) };
    threads.sort_by_key(|(number, _)| *number);
    Ok(threads.into_iter().map(|(_, cpus)| cpus).collect())
}

/// Bytes of a map of all CPUs that the host may have.
fn map_length(connect: &Connect) -> Result<usize, Error> {
    let node = connect.node_info()?;
    let cpus = node.nodes * node.sockets * node.cores * node.threads;
    Ok((cpus as usize).div_ceil(8))
}

/// The bit of CPU n is bit n % 8 of byte n / 8.
fn from_map(map: &[u8]) -> CpuSet {
    let cpus = (0_u32..).zip(map).flat_map(|(index, byte)| {
        (0..8)
            .filter(move |bit| byte & (1 << bit) != 0)
            .map(move |bit| index * 8 + bit)
    });
    cpus.collect()
}

fn to_map(cpus: &CpuSet, bytes: usize) -> Vec<u8> {
    let mut map = vec![0; bytes];
    for cpu in cpus.iter() {
        let index = cpu as usize / 8;
        if index >= map.len() {
            map.resize(index + 1, 0);
        }
        map[index] |= 1 << (cpu % 8);
    }
    map
}

fn length(of: usize) -> std::os::raw::c_int {
    std::os::raw::c_int::try_from(of).unwrap_or(std::os::raw::c_int::MAX)
}

/// What libvirt answered, unless it is its sign of an error.
fn succeeded(result: std::os::raw::c_int) -> Result<usize, Error> {
    usize::try_from(result).map_err(|_| Error::last_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_count_bits_as_libvirt_does() {
        for (cpus, map) in [
            ("0", vec![1, 0]),
            ("0-3,8", vec![15, 1]),
            ("15", vec![0, 128]),
            ("16", vec![0, 0, 1]),
        ] {
            let set: CpuSet = cpus.parse().unwrap();
            assert_eq!(to_map(&set, 2), map, "{cpus}");
            assert_eq!(from_map(&map), set, "{cpus}");
        }
    }
}
