#!/usr/bin/env python3
"""Write the README.md of each chart from its Chart.yaml and the comments in its values.yaml.

gen-docs.py [--check]: with --check nothing is written, and drift is an error.

A comment stands above the key it explains. Keys that hold others have a row only when a comment explains them.
"""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent
KEY = re.compile(r"^(?P<indent> *)(?P<key>[^\s#:][^:]*):(?: (?P<value>.*))?$")

HEAD = """<!-- Written by charts/gen-docs.py: change values.yaml and run it again. -->
# {name}

{description}.

{how}
{preface}

| value | default | meaning |
| --- | --- | --- |
"""


SERVICE = """```
charts/openstack/make-values.sh cloud.yaml    # once per cloud: random passwords, for all charts
helm install {name} charts/openstack/{name} --namespace openstack --values cloud.yaml
```

[All charts by hand](../../../docs/charts-by-hand.md) tells the whole way to a working cloud.
"""

OPERATOR = """```
helm install kupenstack charts/kupenstack --namespace kupenstack-system --create-namespace
```

`helm upgrade` upgrades the custom resource definitions too. `helm uninstall` leaves them, the cloud and its namespace as they are.
"""


class Entry:
    """A key of values.yaml: its path, its text and what the comment above it says."""

    def __init__(self, path, indent, value, comment):
        self.path, self.indent, self.value, self.comment = path, indent, value, comment
        self.has_children = False

    def default(self):
        if self.has_children:
            return ""
        return f"`{self.value}`" if self.value else "a list"


def read(text):
    """The comment at the file's head, and its entries in order."""
    preface, comment, stack, entries, head = [], [], [], [], True
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            comment.append(stripped.lstrip("# ").rstrip())
            continue
        if not stripped:
            if head:
                preface, comment, head = comment, [], False
            continue
        if stripped.startswith("- "):
            continue  # an item of a list: part of its key
        match = KEY.match(line)
        if not match:
            sys.exit(f"this line of values.yaml is not understood: {line}")
        indent = len(match["indent"])
        while stack and stack[-1].indent >= indent:
            stack.pop()
        if stack:
            stack[-1].has_children = True
        path = [*(stack[-1].path if stack else []), match["key"]]
        entry = Entry(path, indent, match["value"] or "", " ".join(comment))
        stack.append(entry)
        entries.append(entry)
        comment = []
    return " ".join(preface), entries


def rows(entries):
    for entry in entries:
        if entry.has_children and not entry.comment:
            continue
        cells = f"`{'.'.join(entry.path)}`", entry.default(), entry.comment
        yield "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def chart_field(chart, field):
    found = re.search(rf"^{field}: (.*)$", (chart / "Chart.yaml").read_text(), re.MULTILINE)
    return found[1]


def document(chart):
    preface, entries = read((chart / "values.yaml").read_text())
    how = (SERVICE if chart.parent.name == "openstack" else OPERATOR).format(name=chart.name)
    head = HEAD.format(name=chart.name, description=chart_field(chart, "description"), how=how, preface=preface)
    return head + "\n".join(rows(entries)) + "\n"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    drifted = False
    for chart in sorted(path.parent for path in [*ROOT.glob("*/values.yaml"), *ROOT.glob("openstack/*/values.yaml")]):
        readme, text = chart / "README.md", document(chart)
        have = readme.read_text() if readme.exists() else ""
        if have == text:
            continue
        drifted = True
        if check:
            sys.stdout.writelines(difflib.unified_diff(
                have.splitlines(True), text.splitlines(True), str(readme), "what values.yaml says"))
        else:
            readme.write_text(text)
            print(f"{readme} written")
    if check and drifted:
        sys.exit("chart documentation is out of date: run charts/gen-docs.py")


if __name__ == "__main__":
    main()
