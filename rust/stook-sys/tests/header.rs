//! Proves that the declarations of this crate are those of the C headers, and that the libraries
//! have the functions. Each declaration is put into C, and a C compiler compares the two. It finds
//! another type of an argument, another offset or size of a field, and another constant.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = include_str!("../src/lib.rs");
const HEADERS: &str = "#include <stddef.h>\n#include <stook/stook.h>\n#include <stook/maple.h>\n";

/// The code without comments, on one line.
fn code() -> String {
    let lines = SOURCE.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join(" ")
}

/// A type of the crate as C writes it, with the name of what is declared.
fn c_type(rust: &str, name: &str) -> String {
    let rust = rust.trim();
    if let Some(inner) = rust.strip_prefix("*mut ") {
        return c_type(inner, &format!("*{name}"));
    }
    if let Some(inner) = rust.strip_prefix("*const ") {
        let target = c_type(inner, &format!("*{name}"));
        return format!("const {target}");
    }
    if let Some(inner) = rust.strip_prefix('[').and_then(|r| r.strip_suffix(']')) {
        let (of, count) = inner.split_once(';').expect("an array has a length");
        return c_type(of, &format!("{name}[{}]", count.trim()));
    }
    if let Some(inner) = rust.strip_prefix("Option<").and_then(|r| r.strip_suffix('>')) {
        return match inner {
            "stook_ctor" => format!("void (*{name})(void *, void *)"),
            "stook_each" => format!("int (*{name})(void *, void *)"),
            "stook_rcu_call" => {
                format!(
                    "void (*{name})(struct stook_rcu_head *, void (*)(struct stook_rcu_head *))"
                )
            }
            "stook_rcu_plain" => format!("void (*{name})(void)"),
            "stook_on_low" => format!("void (*{name})(struct stook_cache *, size_t, void *)"),
            "stook_reclaim" => format!("size_t (*{name})(struct stook_cache *, size_t, void *)"),
            "stook_memory_in" => format!("int (*{name})(void *, size_t, void *)"),
            "stook_memory_out" => format!("void (*{name})(void *, size_t, void *)"),
            "stook_rcu_may_wait" => format!("int (*{name})(void)"),
            "stook_maple_held" => format!("bool (*{name})(const void *)"),
            _ => panic!("unknown function type {inner}"),
        };
    }
    let plain = match rust {
        "" | "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        "c_uint" => "unsigned",
        "usize" => "size_t",
        "u64" => "uint64_t",
        "f64" => "double",
        "bool" => "bool",
        _ if rust.starts_with("stook_") => return format!("struct {rust} {name}"),
        _ => panic!("unknown type {rust}"),
    };
    format!("{plain} {name}")
}

/// `name: type` for each argument or field.
fn named(list: &str) -> Vec<(&str, &str)> {
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.trim_start_matches("pub ").split_once(':').expect("name: type")).collect()
}

/// What lies behind each `mark`, up to `end`.
fn all_between<'a>(code: &'a str, mark: &str, end: char) -> Vec<&'a str> {
    let parts = code.split(mark).skip(1);
    parts.map(|part| part.split(end).next().expect("split has a part")).collect()
}

fn functions(code: &str) -> Vec<(String, String)> {
    let one = |text: &str| {
        let (name, rest) = text.split_once('(').expect("a function has arguments");
        let (arguments, result) = rest.rsplit_once(')').expect("they end");
        let types: Vec<_> = named(arguments).iter().map(|(_, of)| c_type(of, "")).collect();
        let list = if types.is_empty() { "void".into() } else { types.join(", ") };
        let result = result.trim().trim_start_matches("->");
        (name.to_string(), c_type(result, &format!("{name}({list})")))
    };
    all_between(code, "pub fn ", ';').into_iter().map(one).collect()
}

/// The comparison, as a C program that also needs each function to link.
fn comparison(code: &str) -> String {
    let mut c = String::from(HEADERS);
    for constant in all_between(code, "pub const ", ';') {
        let (name, rest) = constant.split_once(':').expect("a constant has a type");
        let (_, value) = rest.split_once('=').expect("and a value");
        // The placeholder is a pointer in C, and no constant there.
        let in_c = name.strip_suffix("_WORD").map(|pointer| format!("(uintptr_t){pointer}"));
        let in_c = in_c.unwrap_or_else(|| name.into());
        writeln!(c, "_Static_assert({in_c} == ({value}), \"{name}\");").unwrap();
    }
    for text in all_between(code, "pub struct ", '}').into_iter().filter(|t| !t.starts_with('$')) {
        let (name, fields) = text.split_once('{').expect("a struct has fields");
        let (name, fields) = (name.trim(), named(fields));
        write!(c, "struct rust_{name} {{ ").unwrap();
        for (field, of) in &fields {
            write!(c, "{}; ", c_type(of, field)).unwrap();
        }
        c.push_str("};\n");
        for (field, _) in fields.iter().filter(|(field, _)| *field != "_rest") {
            writeln!(
                c,
                "_Static_assert(offsetof(struct {name}, {field}) == \
                 offsetof(struct rust_{name}, {field}) && sizeof(((struct {name} *)0)->{field}) == \
                 sizeof(((struct rust_{name} *)0)->{field}), \"{name}.{field}\");"
            )
            .unwrap();
        }
        // A struct that begins with its size may have grown; one with room to spare must hold C's.
        let order = if fields.iter().any(|(field, _)| *field == "_rest") { ">=" } else { "<=" };
        writeln!(
            c,
            "_Static_assert(sizeof(struct rust_{name}) {order} sizeof(struct {name}), \"{name}\");"
        )
        .unwrap();
    }
    let functions = functions(code);
    for (_, prototype) in &functions {
        writeln!(c, "extern {prototype};").unwrap();
    }
    let variables = all_between(code, "pub static ", ';');
    let variables = variables.into_iter().filter_map(|text| text.split_once(':'));
    let variables: Vec<_> = variables.filter(|(name, _)| !name.contains("_urcu_")).collect();
    for (name, of) in &variables {
        writeln!(c, "extern const {};", c_type(of, name)).unwrap();
    }
    // What is in libstook-urcu is compared, and not linked.
    let linked = functions.iter().filter(|(name, _)| !name.contains("_urcu_"));
    let mut names: Vec<_> = linked.map(|(name, _)| format!("(void *){name}")).collect();
    names.extend(variables.iter().map(|(name, _)| format!("(void *)&{name}")));
    writeln!(c, "void *all[] = {{ {} }};\nint main(void) {{ return 0; }}", names.join(", "))
        .unwrap();
    c
}

/// Compiles and links; the compiler's words if it refuses.
fn compiles(c: &str, name: &str) -> Result<(), String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = dir.join(format!("{name}.c"));
    std::fs::write(&file, c).expect("the C program is written");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let done = Command::new(compiler)
        .args(["-std=gnu17", "-w", "-o"])
        .arg(dir.join(name))
        .args(env!("STOOK_CFLAGS").split_whitespace())
        .arg(&file)
        .args(["-L", env!("STOOK_LIB_DIR"), "-lstook-maple", "-lstook", "-pthread"])
        .output()
        .expect("there is a C compiler");
    if done.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&done.stderr).into())
}

#[test]
#[cfg(feature = "maple")]
fn declarations_are_those_of_the_headers() {
    let code = code();
    assert!(functions(&code).len() > 80, "too few functions were found");
    compiles(&comparison(&code), "header").unwrap();
}

#[test]
#[cfg(feature = "maple")]
fn a_wrong_declaration_is_refused() {
    let wrongs = [
        ("type", "pub fn stook_malloc(size: usize)", "pub fn stook_malloc(size: c_int)"),
        ("result", "fn stook_version() -> *const c_char", "fn stook_version() -> c_int"),
        ("constant", "STOOK_CACHE_RCU: u64 = 1 << 6", "STOOK_CACHE_RCU: u64 = 1 << 5"),
        ("offset", "pub args_size: usize,", "pub args_size: usize, pub ctor_data: usize,"),
        ("room", "[u64; 21]", "[u64; 2]"),
        (
            "symbol",
            "pub fn stook_maintain()",
            "pub fn stook_not_there() -> c_int; pub fn stook_maintain()",
        ),
    ];
    for (name, right, wrong) in wrongs {
        let code = code();
        let changed = code.replace(right, wrong);
        assert_ne!(code, changed, "{name}: nothing to change");
        assert!(compiles(&comparison(&changed), name).is_err(), "{name} is not noticed");
    }
}
