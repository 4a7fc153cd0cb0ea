"""A table of two lists of answers that inputs.py has written."""

import json
import sys

before, after = (json.load(open(path)) for path in sys.argv[1:3])
print("| input | right | before | now |\n|---|---|---|---|")
for name, (right, answer) in after.items():
    cells = [name, right, before[name][1], answer]
    print("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
