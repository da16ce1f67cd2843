#!/bin/sh
# What an installed `stook bench` becomes: the program that is installed beside this script.
exec /usr/bin/env python3 "${0%/*}/bench/run.py" "$@"
