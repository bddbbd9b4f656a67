//! Commands on the lab host itself, and the way to every domain of a lab whatever its kind.
//!
//! On an embedded host, commands of host domains run inside the lab's namespaces as their root, in a
//! root file system that is the machine's with everything that is written kept in the lab's directory
//! (`root.sh`). So they see the lab's network and processes, and `down` removes whatever they wrote.
//! As an ordinary user, what belongs to the machine's root stays as closed as it is: what is not
//! readable is not read, and a file of the machine can be replaced but not changed in place.
//!
//! On a libvirtd that others use as well there are no such namespaces: commands run as whoever runs
//! labrig, on the machine as it is.

mod command;
mod lab_host;
mod overlay;
mod routes;

pub use lab_host::LabHost;
pub use overlay::check_overlay;
pub use routes::Routes;
