//! Nothing of its own: the dependency's build leaves the allocator as an archive, which build.py
//! links.
