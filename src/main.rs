//! The `labrig` binary: everything lives in the library.

fn main() -> std::process::ExitCode {
    labrig::cli::main()
}
