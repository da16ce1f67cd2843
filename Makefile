# A thin front to Meson and Ninja: everything about how things are built is in meson.build.
#
#   make build      build/stook, build/libstook.so, build/libstook.a, build/libstook-malloc.so
#   make run        a real program on real data, on stook and on the system's malloc
#   make test       all tests                   make bench      benchmarks beside other allocators
#   make docs       build/site/html: documents, manual and headers as a site
#   make install    PREFIX (/usr/local), LIBDIR (lib), DESTDIR
#   make uninstall  removes what the last `make install` from this build folder put there
#   make clean      removes the build folder

BUILD  ?= build
PREFIX ?= /usr/local
LIBDIR ?= lib
DESTDIR ?=

.PHONY: build run test bench docs install uninstall clean
.NOTPARALLEL:

build: $(BUILD)/build.ninja
	ninja -C $(BUILD) products

# What Meson found it keeps, and what it did not find. So it looks again once packages came or went.
$(BUILD)/build.ninja: $(wildcard /var/lib/dpkg/status)
	@tools/install-deps build
	$(if $(wildcard $@),meson configure --clearcache $(BUILD))
	meson setup $(if $(wildcard $@),--reconfigure) $(BUILD)

run:
	tools/install-deps run
	$(MAKE) build
	tools/make/main-job $(BUILD)

test:
	tools/install-deps test
	$(MAKE) build
	meson configure $(BUILD) -Dtests=enabled
	ninja -C $(BUILD)
	meson test -C $(BUILD) --no-rebuild --print-errorlogs $(TESTS)

bench:
	tools/install-deps bench
	$(MAKE) build
	meson configure $(BUILD) -Dbench=enabled
	ninja -C $(BUILD) bench

docs:
	tools/install-deps docs
	tools/make/site $(BUILD)/site

install: build
	meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX)) -Dlibdir=$(LIBDIR)
	ninja -C $(BUILD) products
	DESTDIR=$(abspath $(DESTDIR)) meson install -C $(BUILD) --no-rebuild --quiet
	@echo "Installed in $(DESTDIR)$(abspath $(PREFIX))."
	@tools/make/found-by-pkg-config $(abspath $(PREFIX)) $(LIBDIR) "$(DESTDIR)"
	@[ -n "$(DESTDIR)" ] || echo "If gdb has no command stook:" \
		"source $(abspath $(PREFIX))/share/stook/stook-gdb.py"

uninstall:
	tools/make/uninstall $(BUILD)

clean:
	rm -rf $(BUILD)
