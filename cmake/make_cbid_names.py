"""Write C++ tables of callback and result names, read from NVIDIA's headers: python make_cbid_names.py INCLUDES OUT."""

import re
import sys
from pathlib import Path


def read(folders: list[Path], name: str) -> str:
    return next((f / name).read_text() for f in folders if (f / name).is_file())


def main() -> None:
    folders = [Path(p) for p in sys.argv[1].split(";")]
    out = ["// Made by cmake/make_cbid_names.py from the CUPTI headers.", "#pragma once", ""]
    for domain, header in (("runtime", "cupti_runtime_cbid.h"), ("driver", "cupti_driver_cbid.h")):
        pairs = re.findall(r"CUPTI_(?:RUNTIME|DRIVER)_TRACE_CBID_(\w+)\s*=\s*(\d+)", read(folders, header))
        names = {int(v): n for n, v in pairs if n not in ("INVALID", "SIZE", "FORCE_INT")}
        out.append(f"inline constexpr const char* k_{domain}_names[] = {{")
        out += [f'    "{names[i]}",' if i in names else "    nullptr," for i in range(max(names) + 1)]
        out.append("};")
    results = re.findall(r"^\s*(CUPTI_(?:SUCCESS|ERROR_\w+))\s*=\s*(\d+)", read(folders, "cupti_result.h"), re.M)
    out.append("inline constexpr struct { int code; const char* name; } k_result_names[] = {")
    out += [f'    {{{v}, "{n}"}},' for n, v in results]
    out.append("};")
    Path(sys.argv[2]).write_text("\n".join(out) + "\n")


main()
