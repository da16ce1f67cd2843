"""Stook for Conan 2: `conan create packaging/conan` in a tree of the sources."""
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

PARTS = (".gitignore", "LICENSE", "NEWS.md", "README.md", "meson.build", "meson_options.txt",
         "bench/*", "cli/*", "dropin/*", "examples/*", "include/*", "man/*", "maple/*", "packaging/*",
         "replay/*", "src/*", "tools/*", "urcu/*")


class Stook(ConanFile):
    name = "stook"
    version = "0.2.0"
    license = "MIT"
    description = "Object caches and malloc on per-CPU sheaves"
    topics = ("allocator", "malloc", "slab", "rcu", "maple-tree")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "tools": [True, False]}
    default_options = {"shared": True, "tools": False}

    def configure(self):
        self.settings.rm_safe("compiler.libcxx")
        self.settings.rm_safe("compiler.cppstd")

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8", "riscv64"):
            raise ConanInvalidConfiguration("stook needs Linux on x86-64, aarch64 or riscv64")

    def layout(self):
        basic_layout(self, src_folder="source")

    def export_sources(self):
        for part in PARTS:
            copy(self, part, Path(self.recipe_folder).parents[1],
                 Path(self.export_sources_folder, "source"))

    def generate(self):
        meson = MesonToolchain(self)
        for name in ("tests", "bench", "urcu", "libdw", "top"):
            meson.project_options[name] = "disabled"
        meson.project_options["cli"] = bool(self.options.tools)
        meson.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build("products")

    def package(self):
        Meson(self).install()
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder, "licenses"))
        # One kind is left, so that a program links what was asked for.
        unwanted = "*.a" if self.options.shared else "*.so*"
        for path in Path(self.package_folder, "lib").glob(unwanted):
            path.unlink()

    def package_info(self):
        for name, requires in (("stook", ()), ("maple", ("stook",)), ("malloc", ())):
            part = self.cpp_info.components[name]
            part.libs = ["stook" if name == "stook" else f"stook-{name}"]
            part.requires = list(requires)
            part.set_property("pkg_config_name", part.libs[0])
            part.set_property("cmake_target_name", f"stook::{name}")
        if not self.options.shared:
            self.cpp_info.components["malloc"].requires = ["stook"]
        self.cpp_info.components["maple"].system_libs = ["pthread"]
