"""What builds a library: `setup.py` for pip, a Makefile for C; both with gcc alone and the flags of the verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from opsmith.targets.native.flags import BuildFlags

PRIVATE = ("-fwhole-program", "-Wno-attributes")  # only the operator itself is seen outside of its file
_SETUP = '''
"""Builds the operators with gcc, each with the flags that it was judged with. Made by `opsmith export`.

In the environment, CC names another gcc, and ISA another instruction set than that of the verdicts, as -march calls it.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

PACKAGE = {package}
UNITS = {units}
LINK = {link}

SOURCES = Path(__file__).parent / PACKAGE / "csrc"
LIBRARY = f"lib{{PACKAGE}}.so"


class BuildOperators(build_py):
    def run(self):
        super().run()
        folder = SOURCES.parent if self.editable_mode else Path(self.build_lib) / PACKAGE
        build_library(folder / LIBRARY)


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


def build_library(library):
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    if not compiler or shutil.which(compiler[0]) is None:
        raise SystemExit(f"{{PACKAGE}}: no compiler: given {{' '.join(compiler)}}; expected gcc; try: apt install gcc")
    with tempfile.TemporaryDirectory() as folder:
        orders = [write_order(compiler, name, flags, Path(folder)) for name, flags in UNITS.items()]
        orders.append([*compiler, f'-DISA="{{list_instruction_sets()}}"', "-fPIC", "-c", str(SOURCES / "_isa.c")])
        orders[-1] += ["-o", f"{{folder}}/_isa.o"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run_order, orders))
        objects = sorted(str(path) for path in Path(folder).glob("*.o"))
        library.parent.mkdir(parents=True, exist_ok=True)
        run_order([*compiler, *objects, "-o", str(library), *LINK])


def write_order(compiler, name, flags, folder):
    isa = os.environ.get("ISA")
    flags = [f"-march={{isa}}" if isa and flag.startswith("-march=") else flag for flag in flags]
    unit = ["-include", str(SOURCES / f"{{name}}.h"), "-c", str(SOURCES / f"{{name}}.c")]
    return [*compiler, *flags, "-fPIC", *unit, "-o", str(folder / f"{{name}}.o")]


def list_instruction_sets():
    stated = {{flag for flags in UNITS.values() for flag in flags if flag.startswith("-march=")}}
    return os.environ.get("ISA") or " ".join(sorted(flag.removeprefix("-march=") for flag in stated))


def run_order(order):
    result = subprocess.run(order, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{{PACKAGE}}: {{shlex.join(order)}}\\n{{result.stderr}}")


setup(
    cmdclass={{"build_py": BuildOperators}},
    distclass=BinaryDistribution,
    package_data={{PACKAGE: ["csrc/*", "include/*"]}},
)
'''.lstrip("\n")
_MAKEFILE = """
# lib{package}.so for programs in C: include {package}/include/{package}.h. Made by `opsmith export`.
# `make ISA=...` builds for another instruction set than that of the verdicts.
ifeq ($(origin CC),default)
CC := gcc
endif
SOURCES := {package}/csrc
BUILD := build/objects
{isa}
OBJECTS := {objects} $(BUILD)/_isa.o

{package}/lib{package}.so: $(OBJECTS)
\t$(CC) $^ -o $@ {link}

$(BUILD)/%.o: $(SOURCES)/%.c $(SOURCES)/%.h
\t@mkdir -p $(BUILD)
\t$(CC) $(FLAGS) -fPIC -include $(SOURCES)/$*.h -c $< -o $@

$(BUILD)/_isa.o: $(SOURCES)/_isa.c
\t@mkdir -p $(BUILD)
\t$(CC) -DISA='"$(sort $(INSTRUCTION_SETS))"' -fPIC -c $< -o $@

{flags}
.PHONY: clean
clean:
\trm -rf $(BUILD) {package}/lib{package}.so
""".lstrip("\n")


def write_setup(package: str, flags: Mapping[str, BuildFlags]) -> str:
    """`setup.py`; `flags` of each operator by name."""
    units = {name: [*own.compile_flags, *PRIVATE] for name, own in flags.items()}
    return _SETUP.format(
        package=json.dumps(package), units=json.dumps(units, indent=4), link=json.dumps(_join_links(flags))
    )


def write_makefile(package: str, flags: Mapping[str, BuildFlags]) -> str:
    """A Makefile that builds the same shared object in its folder."""
    names = {own.isa.name for own in flags.values()}
    isa = f"INSTRUCTION_SETS := $(or $(ISA),{' '.join(sorted(names - {''}))})"
    rows = [f"$(BUILD)/{name}.o: FLAGS = {_write_flags(own)}\n" for name, own in flags.items()]
    objects = " ".join(f"$(BUILD)/{name}.o" for name in flags)
    link = " ".join(_join_links(flags))
    return _MAKEFILE.format(package=package, isa=isa, objects=objects, link=link, flags="".join(rows))


def _write_flags(flags: BuildFlags) -> str:
    march = flags.isa.flag
    words = [f"-march=$(or $(ISA),{flags.isa.name})" if flag == march else flag for flag in flags.compile_flags]
    return " ".join([*words, *PRIVATE])


def _join_links(flags: Mapping[str, BuildFlags]) -> Sequence[str]:
    """What links all of them: each flag once, libraries last."""
    return list(dict.fromkeys(flag for own in flags.values() for flag in own.link_flags))
