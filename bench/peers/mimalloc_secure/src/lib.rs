//! Nothing of its own: build.py compiles the sources that the dependency carries.
