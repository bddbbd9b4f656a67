//! Stand-ins for the outside world, for tests: a host that holds networks, domains and files in
//! memory, images without content, guests that answer once they have booted, a journal to read.
//!
//! They keep state, read the XML they are given, refuse what libvirt refuses in its own words, and
//! fail where a test tells them to ([`Faults`]). Beyond what the ports show, [`FakeHypervisor`]
//! knows what a real host hides: a domain that runs on a disk, a network or a definition which was
//! replaced under it ([`FakeHypervisor::problems`]).

mod faults;
mod hypervisor;
mod images;
mod journal;
mod remote;
mod world;

pub use faults::{Effect, Fault, Faults, Operation};
pub use hypervisor::FakeHypervisor;
pub use images::FakeImages;
pub use journal::FakeJournal;
pub use remote::FakeRemote;
pub use world::World;
