//! Errors, which are those of the C interface, and names as it takes them.

use core::fmt;
use stook_sys::{c_char, c_int};

extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// Why a call failed: an error number of the C interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Error(c_int);

impl Error {
    /// No range has the key (`ENOENT`).
    #[cfg(feature = "maple")]
    pub(crate) const ABSENT: Error = Error(2);
    /// There is no memory, or a group's limit is met (`ENOMEM`).
    pub const NO_MEMORY: Error = Error(12);
    /// Something is in use (`EBUSY`), or there is no such gap.
    pub const BUSY: Error = Error(16);
    /// Something is there already (`EEXIST`).
    pub const EXISTS: Error = Error(17);
    /// An argument is wrong (`EINVAL`).
    pub const INVALID: Error = Error(22);

    /// The call would wait for itself for ever (`EDEADLK`).
    pub const DEADLOCK: Error = Error(35);

    /// The error number of C.
    pub fn errno(self) -> i32 {
        self.0
    }

    /// What a call that returned NULL left in errno.
    pub(crate) fn last() -> Error {
        // SAFETY: glibc and musl return this thread's errno, which is always there.
        Error(unsafe { *__errno_location() })
    }

    /// Of a call that returns 0, or an error number below 0.
    pub(crate) fn check(status: c_int) -> Result<(), Error> {
        if status < 0 {
            Err(Error(-status))
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({}: {})", self.0, self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            7 => f.write_str("larger than an object can be"),
            12 => f.write_str("no memory, or a limit is met"),
            16 => f.write_str("in use, or no such gap"),
            17 => f.write_str("there already"),
            22 => f.write_str("a wrong argument"),
            23 => f.write_str("too many caches or groups"),
            35 => f.write_str("would wait for itself"),
            95 => f.write_str("not supported"),
            other => write!(f, "error {other}"),
        }
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Error {}

/// A name of 1 to 63 bytes with its end, as C wants it.
pub(crate) struct Name([u8; 64]);

impl Name {
    pub(crate) fn new(name: &str) -> Result<Name, Error> {
        let mut bytes = [0; 64];
        if name.is_empty() || name.len() >= bytes.len() || name.contains('\0') {
            return Err(Error::INVALID);
        }
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Name(bytes))
    }

    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}
