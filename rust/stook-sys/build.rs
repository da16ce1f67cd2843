//! Finds libstook and tells the linker: in the folder `STOOK_LIB_DIR`, or by pkg-config.
//! `STOOK_LIB_STATIC=1` links the static libraries. `STOOK_CFLAGS` holds the compiler's flags for
//! Stook's headers, which tests need where pkg-config does not know them.

use std::env;
use std::process::{exit, Command};

fn fail(text: &str) -> ! {
    eprintln!("stook-sys: {text}");
    exit(1)
}

/// What pkg-config says of a package of Stook.
fn pkg_config(option: &str, package: &str) -> Result<String, String> {
    let command = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let done = Command::new(&command)
        .args(["--print-errors", option, package]) // else --variable fails in silence
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).trim().into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().into())
}

/// The libraries to link, the one that needs the others first.
fn libraries() -> Vec<&'static str> {
    let mut all = Vec::new();
    if env::var_os("CARGO_FEATURE_MAPLE").is_some() {
        all.push("stook-maple");
    }
    if env::var_os("CARGO_FEATURE_URCU").is_some() {
        all.push("stook-urcu");
    }
    all.push("stook");
    all
}

fn main() {
    for name in
        ["STOOK_LIB_DIR", "STOOK_LIB_STATIC", "STOOK_CFLAGS", "PKG_CONFIG", "PKG_CONFIG_PATH"]
    {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let dir = match env::var("STOOK_LIB_DIR") {
        Ok(dir) => dir,
        Err(_) => pkg_config("--variable=libdir", "stook").unwrap_or_else(|why| {
            fail(&format!("no libstook: set STOOK_LIB_DIR to its folder, or install it ({why})"))
        }),
    };
    let kind = match env::var("STOOK_LIB_STATIC").as_deref() {
        Ok("1") => "static",
        Ok("0") | Err(_) => "dylib",
        Ok(other) => fail(&format!("STOOK_LIB_STATIC is 0 or 1, not {other}")),
    };
    println!("cargo:rustc-link-search=native={dir}");
    for library in libraries() {
        println!("cargo:rustc-link-lib={kind}={library}");
    }
    let cflags =
        env::var("STOOK_CFLAGS").or_else(|_| pkg_config("--cflags", "stook")).unwrap_or_default();
    println!("cargo:rustc-env=STOOK_CFLAGS={cflags}");
    println!("cargo:rustc-env=STOOK_LIB_DIR={dir}");
}
